package framework

import "github.com/docent-go/docent/internal/ctxerr"

// authenticate sends the credentials that the wire does not have yet; those
// that it has it sends again by itself. The tap tells when they are accepted.
func (s *session) authenticate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := s.core.cfg.auth[s.authed:]
	if s.authing || len(missing) == 0 {
		return
	}
	s.authing = s.core.spawn(func() { // ends with the answers or the wire
		for _, c := range missing {
			if err := s.wire.addAuth(c); err != nil {
				s.giveUpAuth(err)
				break
			}
			s.mu.Lock()
			s.authed++
			s.mu.Unlock()
		}
		s.mu.Lock()
		s.authing = false
		s.mu.Unlock()
		s.wake()
	})
}

// giveUpAuth closes the connection on which a credential could not be sent,
// unless the server refused it or the connection broke, which the tap tells:
// another attempt at once would meet the same.
func (s *session) giveUpAuth(err error) {
	if !ctxerr.Is(err, ErrAuthFailed) && !ctxerr.Is(err, ErrUnknownOutcome) {
		s.tap.CloseConn(err)
	}
}
