package framework

import "time"

// onLink runs on a goroutine of the wire client, so it only takes note.
func (s *session) onLink(ev linkEvent) {
	if ev == linkDown {
		s.watches.severAll() // before anything is sent on the next connection
	}
	s.mu.Lock()
	s.links = append(s.links, ev)
	s.mu.Unlock()
	s.wake()
}

// follow acts on what the wire and the tap reported, and returns what ended the
// session.
func (s *session) follow() error {
	s.mu.Lock()
	links := s.links
	s.links = nil
	s.mu.Unlock()
	for _, link := range links {
		switch link {
		case linkExpired:
			return ErrSessionExpired
		case linkDown:
			if fault := s.tap.Fault(); s.unlink() {
				s.core.transition(Suspended, s, fault)
			} else if fault != nil {
				s.core.fault(fault)
			}
		case linkUp:
			s.setUp(time.Now())
		}
	}
	if err := s.tap.Ended(); err != nil {
		return sessionError(err)
	}
	s.mu.Lock()
	waiting := !s.up.IsZero() && !s.linked
	s.mu.Unlock()
	if waiting {
		s.admit()
	}
	return nil
}

// admit puts a connection into service once the server has accepted all
// credentials on it.
func (s *session) admit() {
	accepted, refused := s.tap.Auth()
	switch {
	case refused:
		s.setUp(time.Time{})
		s.core.transition(AuthFailed, s, ErrAuthFailed)
		s.tap.CloseConn() // as the server does; the pause between attempts grows
	case accepted < len(s.core.cfg.auth):
		s.authenticate()
	default:
		s.mu.Lock()
		s.linked = true
		s.mu.Unlock()
		s.hosts.serves()
		s.watches.fireAll(EventReconnected) // before anybody sets one on this connection
		s.core.transition(Connected, s, nil)
	}
}

func (s *session) setUp(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = at
}

// unlink takes note that the connection is gone, and reports whether it served.
func (s *session) unlink() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.linked
	s.up, s.linked = time.Time{}, false
	return was
}
