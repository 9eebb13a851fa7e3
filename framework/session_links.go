package framework

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkconn"
)

// A link is a change of the wire's connection, with the connection's state at that moment. Soon
// after, the next connection replaces it.
type link struct {
	event zkconn.LinkEvent
	fault error // why it ended; ErrAuthFailed if a credential was refused
}

// onLink runs on a goroutine of the wire client, so it only records the event.
func (s *session) onLink(ev zkconn.LinkEvent) {
	l := link{event: ev}
	if ev == zkconn.LinkDown {
		s.watches.Sever() // before anything is sent on the next connection
		s.core.trees.sever(s)
		l.fault = s.linkFault()
	}
	s.follows(l)
}

// follows passes l to the loop.
func (s *session) follows(l link) {
	s.mu.Lock()
	s.links = append(s.links, l)
	s.mu.Unlock()
	s.wake()
}

// linkFault returns why the present connection has ended.
func (s *session) linkFault() error {
	if refusal := s.refusal(); refusal != nil {
		return refusal
	}
	fault := s.tap.Fault()
	if errors.Is(fault, tap.ErrRefused) {
		return fmt.Errorf("%w: %w", ErrAuthFailed, fault)
	}
	return fault
}

// refusal returns why the server refused a credential on the present connection, or nil. It is
// ErrAuthFailed unless the credential was on trial.
func (s *session) refusal() error {
	refusal := s.tap.Refusal()
	if errors.Is(refusal, tap.ErrCredential) {
		return ErrAuthFailed
	}
	return refusal
}

// follow acts on the reports of the wire and the tap. If they end the session, it returns the
// cause.
func (s *session) follow() error {
	s.mu.Lock()
	links := s.links
	s.links = nil
	s.mu.Unlock()
	for _, link := range links {
		switch link.event {
		case zkconn.LinkExpired:
			return ErrSessionExpired
		case zkconn.LinkDown:
			if err := s.down(link.fault); err != nil {
				return err
			}
		case zkconn.LinkUp:
			if err := s.linkedUp(); err != nil {
				return err
			}
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
	if !s.readsOnly {
		s.tendTrees()
	}
	return nil
}

// linkedUp records that the session has a connection. It returns an error if the connection ends
// the session.
func (s *session) linkedUp() error {
	s.setUp(time.Now())
	if !s.readsOnly {
		s.checkMargin()
		return nil
	}
	if !s.tap.ReadOnly() {
		s.link() // the wire's end then closes the session in order
		return errQuorum
	}
	return nil
}

// down records that the connection ended, because of fault. It returns an error if that ends the
// session.
func (s *session) down(fault error) error {
	served := s.unlink()
	switch {
	case s.readsOnly && served:
		return cmp.Or(fault, errLeftAway)
	case s.readsOnly && fault != nil && s.ended() == nil:
		s.core.readOnlyFailed(s.ServerAddr(), fault)
	case s.readsOnly:
	case errors.Is(fault, ErrAuthFailed) && s.ended() == nil:
		s.authFailed(fault)
		s.core.failed(s.ServerAddr(), fault)
	case served:
		s.core.transition(Suspended, s, fault)
	case fault != nil && s.ended() == nil:
		s.core.failed(s.ServerAddr(), fault)
	}
	return nil
}

// checkMargin logs, once a session, that the configured lease margin is not used.
func (s *session) checkMargin() {
	timeout := s.timeout()
	used, configured := s.core.cfg.margin(timeout), s.core.cfg.leaseMargin
	if !s.core.cfg.marginGiven || used == configured || s.marginTold {
		return
	}
	s.marginTold = true
	s.core.log.Error("lease margin is more than half the session timeout that the server granted",
		zap.Duration("lease_margin", configured), zap.Duration("lease_margin_used", used),
		zap.Duration("session_timeout", timeout))
}

// authFailed records that a server refuses the client, because of fault.
func (s *session) authFailed(fault error) {
	s.core.transition(AuthFailed, s, fault)
	s.core.credentials.settle(ErrAuthFailed)
}

// admit puts a connection into service unless the server has refused a credential on it.
func (s *session) admit() {
	refusal := s.refusal()
	switch {
	case refusal != nil:
		s.setUp(time.Time{})
		if errors.Is(refusal, ErrAuthFailed) && !s.readsOnly {
			s.authFailed(refusal)
		}
		s.tap.CloseConn(refusal) // as the server does; the pause between attempts grows
	case s.core.refused() && !s.accepted():
		s.probe()
	default:
		s.link()
		s.hosts.Serves()
		s.watches.FireAll(watchreg.Reconnected) // before a watch is set on this connection
		if s.readsOnly {
			s.core.enterReadOnly()
			return
		}
		s.core.transition(Connected, s, nil)
		s.core.credentials.settle(nil)
	}
}

// link records that the connection serves.
func (s *session) link() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked = true
}

func (s *session) setUp(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = at
}

// unlink records that the connection is lost, and reports whether it served.
func (s *session) unlink() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.linked
	s.up, s.linked, s.heard, s.beaten = time.Time{}, false, false, time.Time{}
	return was
}
