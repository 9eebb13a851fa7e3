package framework

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
				break // refused, or the connection broke: the tap tells which
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
