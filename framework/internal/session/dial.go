package session

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
)

// dial connects to a server, after a pause. go-zookeeper calls it again and again.
func (s *Session) dial() (net.Conn, error) {
	if s.over() {
		return s.wire.Over(), nil
	}
	most := time.Duration(0)
	if timeout := s.Timeout(); timeout > 0 && !s.cfg.Client.Refused() {
		most = timeout / pauseFraction // a session could be lost
	}
	p := s.cfg.Servers.Pause(most)
	if p.Again {
		s.cfg.Client.RoundFailed()
	}
	if err := s.pause(p); err != nil {
		return nil, err
	}
	if p.Round {
		s.cfg.Client.BeginRound(s)
	}
	t, conn, err := s.attempt()
	if err != nil {
		s.undialled(t, err)
		return nil, err
	}
	return conn, nil
}

// undialled records that an attempt to connect failed with err.
func (s *Session) undialled(t hosts.Target, err error) {
	// ErrNoServers follows a fault that BeginRound has reported.
	reported := errors.Is(err, errRenewed) || errors.Is(err, hosts.ErrNoServers)
	switch {
	case s.over():
		s.Wake() // the handshake may have said so
	case reported:
	case errors.Is(err, zkerr.ErrAuthFailed) && !s.cfg.ReadOnly:
		s.report(connChange{fault: err}) // the state changes
	default:
		s.cfg.Client.Failed(t.Server, err)
	}
}

// attempt makes one attempt to connect to the next target, which it also returns. SetServers ends
// an attempt that is under way.
func (s *Session) attempt() (hosts.Target, net.Conn, error) {
	deadline := time.Now().Add(s.AttemptLimit())
	renewable, leave := context.WithCancelCause(s.ctx)
	defer leave(nil)
	ctx, cancel := context.WithDeadline(renewable, deadline)
	defer cancel()
	s.mu.Lock()
	s.leave = leave
	s.mu.Unlock()
	t, err := s.cfg.Servers.NextTarget(ctx)
	if err != nil {
		return t, nil, renewedOr(renewable, err)
	}
	conn, err := s.cfg.Client.Connect(ctx, t)
	if err != nil {
		return t, nil, renewedOr(renewable, err)
	}
	exchange, err := s.cfg.Client.StartSASL(ctx, t.Server)
	if err != nil {
		return t, nil, renewedOr(renewable, errors.Join(err, conn.Close()))
	}
	s.mu.Lock()
	s.target = t
	s.mu.Unlock()
	connected, err := s.wire.Connect(ctx, conn, wire.Identification{SASL: exchange, Credentials: s.cfg.Client.Credentials()})
	if err != nil {
		return t, nil, renewedOr(renewable, refusal(err))
	}
	if !s.cfg.Servers.Has(t) { // after the target was set; SetServers is the other way round
		s.wire.CloseConn(errRemoved)
	}
	return t, connected, nil
}

// over reports whether the session has ended, or is about to.
func (s *Session) over() bool { return s.Ended() != nil || s.wire.Status().Ended != nil }

// renewedOr returns errRenewed if that ended ctx, else err.
func renewedOr(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errRenewed) {
		return errRenewed
	}
	return err
}

// AttemptLimit returns the most that an attempt to connect may take.
func (s *Session) AttemptLimit() time.Duration {
	limit := s.cfg.ConnectTimeout
	if timeout := s.Timeout(); timeout > 0 {
		limit = min(limit, timeout/connectFraction)
	}
	return limit
}

func (s *Session) pause(p hosts.Pause) error {
	if p.Wait == 0 {
		return context.Cause(s.ctx)
	}
	timer := time.NewTimer(p.Wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.Renewed:
	case <-s.ctx.Done():
	}
	return context.Cause(s.ctx)
}

// Renew begins an attempt to connect at once. It ends a pause or the present attempt.
func (s *Session) Renew() {
	s.mu.Lock()
	leave := s.leave
	s.mu.Unlock()
	if leave != nil {
		leave(errRenewed)
	}
	s.wire.CloseConn(errRenewed)
	s.cfg.Servers.Renew() // last: the next attempt may have begun, and this ends it
}

// UpdateServers changes the servers of the next attempts to connect.
func (s *Session) UpdateServers(servers, fallback []string) { s.cfg.Servers.Update(servers, fallback) }
