package framework

import (
	"context"
	"errors"
	"net"
	"time"
)

// dial connects to a server on behalf of the wire client.
func (s *session) dial(addr string) (net.Conn, error) {
	wait, renewed := s.hosts.pause()
	if timeout := s.timeout(); timeout > 0 && !s.core.refused() {
		wait = min(wait, timeout/pauseFraction) // a session is at stake
	}
	if err := s.pause(wait, renewed); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.server = addr
	s.mu.Unlock()
	deadline := time.Now().Add(s.attemptLimit())
	ctx, cancel := context.WithDeadline(s.ctx, deadline)
	defer cancel()
	conn, err := s.core.cfg.connect(ctx, addr)
	if err != nil {
		if s.ended() == nil {
			s.core.failed(addr, err)
		}
		return nil, err
	}
	wrapped, err := s.tap.Wrap(conn, deadline)
	if err != nil {
		return nil, err // not a *tap.Conn in a net.Conn, which would not be nil
	}
	return wrapped, nil
}

// errRemoved is why a client leaves a server that works.
var errRemoved = errors.New("the server is no longer among those that the client goes to")

// attemptLimit bounds an attempt to connect.
func (s *session) attemptLimit() time.Duration {
	limit := s.core.cfg.connectTimeout
	if timeout := s.timeout(); timeout > 0 {
		limit = min(limit, timeout/connectFraction)
	}
	return limit
}

func (s *session) pause(d time.Duration, renewed <-chan struct{}) error {
	if d == 0 {
		return context.Cause(s.ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-renewed:
	case <-s.ctx.Done():
	}
	return context.Cause(s.ctx)
}

// reconfigure changes the servers, and leaves the present one if it is not
// among them.
func (s *session) reconfigure(servers []string) {
	s.mu.Lock()
	current := s.server
	s.mu.Unlock()
	if s.hosts.replace(servers, current) {
		s.tap.CloseConn(errRemoved)
	}
}
