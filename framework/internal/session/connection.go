package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
)

// Why a session at a read-only server ends without a fault.
var (
	ErrQuorum   = errors.New("a server with a quorum was found")
	ErrLeftAway = errors.New("the read-only server closed the connection")
)

// onUp records that there is a connection.
func (s *Session) onUp() { s.report(connChange{up: true}) }

// onDown records that the connection has ended. It runs before there is another one.
func (s *Session) onDown() {
	s.watches.Sever() // before anything is sent on the next connection
	if s.cfg.Trees != nil {
		s.cfg.Trees.Sever(s)
	}
	s.setTimer() // what arrived on the connection counts no more
	st := s.wire.Status()
	s.report(connChange{fault: cmp.Or(refusal(st.Refusal), st.Fault)})
}

// report passes the change to the loop.
func (s *Session) report(c connChange) {
	s.mu.Lock()
	s.changes = append(s.changes, c)
	s.mu.Unlock()
	s.Wake()
}

// refusal returns err as the client knows it: zkerr.ErrAuthFailed if a server has refused the client, unless
// the credential was on trial.
func refusal(err error) error {
	var named wire.RefusedSchemeError
	switch {
	case errors.As(err, &named):
		return fmt.Errorf("%w: %w", zkerr.ErrAuthFailed, named)
	case errors.Is(err, wire.ErrCredential):
		return zkerr.ErrAuthFailed
	case errors.Is(err, wire.ErrRefused):
		return fmt.Errorf("%w: %w", zkerr.ErrAuthFailed, err)
	}
	return err
}

// handleReports acts on the reports of the wire. If they end the session, it returns the cause.
func (s *Session) handleReports() error {
	s.mu.Lock()
	changes := s.changes
	s.changes = nil
	s.mu.Unlock()
	for _, change := range changes {
		var err error
		if change.up {
			err = s.connected()
		} else {
			err = s.disconnected(change.fault)
		}
		if err != nil {
			return err
		}
	}
	if err := s.wire.Status().Ended; err != nil {
		return sessionError(err)
	}
	s.mu.Lock()
	waiting := !s.up.IsZero() && !s.serving
	s.mu.Unlock()
	if waiting {
		s.putIntoService()
	}
	if s.departs() {
		s.cfg.Client.Suspended(s, errRemoved) // again at the connection's end, which changes nothing
	}
	if s.cfg.Trees != nil {
		s.tendTrees()
	}
	return nil
}

// connected records that the session has a connection. It returns an error if the connection ends
// the session.
func (s *Session) connected() error {
	s.setUp(time.Now())
	if !s.cfg.ReadOnly {
		s.checkTimeout()
		return nil
	}
	if !s.wire.Status().ReadOnly {
		s.startServing() // the wire's end then closes the session in order
		return ErrQuorum
	}
	return nil
}

// disconnected records that the connection ended, because of fault. It returns an error if that ends the
// session.
func (s *Session) disconnected(fault error) error {
	served := s.stopServing()
	switch {
	case s.cfg.ReadOnly && served:
		return cmp.Or(fault, ErrLeftAway)
	case s.cfg.ReadOnly && fault != nil && s.Ended() == nil:
		s.cfg.Client.Failed(s.ServerAddr(), fault)
	case s.cfg.ReadOnly:
	case errors.Is(fault, zkerr.ErrAuthFailed) && s.Ended() == nil:
		s.cfg.Client.AuthFailed(s, fault)
		s.cfg.Client.Failed(s.ServerAddr(), fault)
	case served:
		s.cfg.Client.Suspended(s, fault)
	case fault != nil && s.Ended() == nil:
		s.cfg.Client.Failed(s.ServerAddr(), fault)
	}
	return nil
}

// Fields of log lines.
const (
	FieldTimeout = "zookeeper.session.timeout"
	FieldMargin  = "zookeeper.session.lease_margin"
)

// checkTimeout logs, once a session, that the server has granted another session timeout than the one
// asked for, and that the configured lease margin is not used.
func (s *Session) checkTimeout() {
	if s.timeoutChecked {
		return
	}
	s.timeoutChecked = true
	timeout := s.Timeout()
	if asked := s.cfg.Timeout.Truncate(time.Millisecond); timeout != asked {
		s.cfg.Log.Warn("the server granted another session timeout than asked for",
			zap.Duration(FieldTimeout, timeout), zap.Duration("zookeeper.session.timeout_asked", asked))
	}
	used, configured := s.cfg.Margin(timeout), s.cfg.Wanted
	if configured == 0 || used == configured {
		return
	}
	s.cfg.Log.Error("lease margin is more than half the session timeout that the server granted",
		zap.Duration(FieldMargin, configured), zap.Duration("zookeeper.session.lease_margin_used", used),
		zap.Duration(FieldTimeout, timeout))
}

// putIntoService puts a connection into service unless the server has refused a credential on it.
func (s *Session) putIntoService() {
	refused := refusal(s.wire.Status().Refusal)
	switch {
	case refused != nil:
		s.setUp(time.Time{})
		if errors.Is(refused, zkerr.ErrAuthFailed) && !s.cfg.ReadOnly {
			s.cfg.Client.AuthFailed(s, refused)
		}
		s.wire.CloseConn(refused) // as the server does; the pause between attempts grows
	case s.cfg.Client.Refused() && !s.accepted():
		s.probe()
	default:
		s.startServing()
		s.cfg.Servers.Serves()
		s.proveFirst()
		s.watches.FireAll() // before a watch is set on this connection
		s.cfg.Client.Connected(s)
	}
}

// startServing records that the connection serves.
func (s *Session) startServing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = true
}

func (s *Session) setUp(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = at
}

// stopServing records that the connection is lost, and reports whether it served.
func (s *Session) stopServing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.serving
	s.departure.departedLocked()
	s.leaving.Store(false)
	s.up, s.serving, s.probed, s.heartbeatAt = time.Time{}, false, false, time.Time{}
	return was
}
