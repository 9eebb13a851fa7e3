package framework

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/zkconn"
)

// Causes for which a client leaves a server, or ends an attempt to connect, without a fault.
var (
	errRemoved = errors.New("the server is no longer among those that the client goes to")
	errRenewed = errors.New("the client goes to other servers now")
)

// dial connects to a server for the wire client, which does not say to which.
func (s *session) dial(string) (net.Conn, error) {
	p := s.hosts.Pause()
	if timeout := s.timeout(); timeout > 0 && !s.core.refused() {
		p.Wait = min(p.Wait, timeout/pauseFraction) // a session could be lost
	}
	if p.Again && !s.readsOnly && s.core.cfg.readOnly {
		s.core.seekReadOnly()
	}
	if err := s.pause(p); err != nil {
		return nil, err
	}
	if p.Round && !s.readsOnly {
		s.askForServers()
	}
	t, conn, err := s.attempt()
	if err != nil {
		s.undialled(t, err)
		return nil, err
	}
	return conn, nil
}

// undialled records that an attempt to connect failed with err.
func (s *session) undialled(t hosts.Target, err error) {
	// ErrNoServers follows a fault that askForServers has logged.
	told := errors.Is(err, errRenewed) || errors.Is(err, hosts.ErrNoServers)
	switch {
	case told || s.ended() != nil:
	case s.readsOnly:
		s.core.readOnlyFailed(t.Server, err)
	case errors.Is(err, ErrAuthFailed):
		s.follows(link{event: zkconn.LinkDown, fault: err}) // the state changes
	default:
		s.core.failed(t.Server, err)
	}
}

// attempt makes one attempt to connect to the next target, which it also returns. SetServers ends
// an attempt that is under way.
func (s *session) attempt() (hosts.Target, net.Conn, error) {
	deadline := time.Now().Add(s.attemptLimit())
	renewable, leave := context.WithCancelCause(s.ctx)
	defer leave(nil)
	ctx, cancel := context.WithDeadline(renewable, deadline)
	defer cancel()
	s.mu.Lock()
	s.leave = leave
	s.mu.Unlock()
	t, err := s.hosts.NextTarget(ctx)
	if err != nil {
		return t, nil, renewedOr(renewable, err)
	}
	conn, err := s.core.cfg.connect(ctx, t)
	if err != nil {
		return t, nil, renewedOr(renewable, err)
	}
	exchange, err := s.core.cfg.startSASL(ctx, t.Server)
	if err != nil {
		return t, nil, renewedOr(renewable, errors.Join(err, conn.Close()))
	}
	wrapped, err := s.tap.Wrap(conn, deadline)
	if err != nil {
		return t, nil, err // not a *tap.Conn in a net.Conn, which would not be nil
	}
	if exchange != nil {
		wrapped.UseSASL(exchange)
	}
	wrapped.UseCredentials(s.core.credentials.present())
	s.mu.Lock()
	s.target = t
	s.mu.Unlock()
	if !s.hosts.Has(t) { // after the target was set; setServers is the other way round
		s.tap.CloseConn(errRemoved)
		return t, nil, errRenewed
	}
	return t, wrapped, nil
}

// renewedOr returns errRenewed if that ended ctx, else err.
func renewedOr(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errRenewed) {
		return errRenewed
	}
	return err
}

// attemptLimit bounds an attempt to connect.
func (s *session) attemptLimit() time.Duration {
	limit := s.core.cfg.connectTimeout
	if timeout := s.timeout(); timeout > 0 {
		limit = min(limit, timeout/connectFraction)
	}
	return limit
}

func (s *session) pause(p hosts.Pause) error {
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

// setServers changes the servers. It ends an attempt to connect, and leaves the present server if
// that is not among the new servers.
func (s *session) setServers(servers, fallback []string) {
	s.hosts.Replace(servers, fallback)
	s.mu.Lock()
	t, leave := s.target, s.leave
	s.mu.Unlock()
	if leave != nil {
		leave(errRenewed)
	}
	if !s.hosts.Has(t) {
		s.tap.CloseConn(errRemoved)
	}
}

// leaveUnless leaves the present server unless it is one of servers.
func (s *session) leaveUnless(servers []string) {
	if !s.reached().Among(servers) {
		s.tap.CloseConn(errRemoved)
	}
}
