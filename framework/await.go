package framework

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/usercall"
)

// awaitUp waits until the client is Connected, whatever states come before that,
// and returns false if it is closed first.
func (c *core) awaitUp() bool {
	for {
		c.mu.Lock()
		state, up := c.state, c.up
		c.mu.Unlock()
		if state == Connected {
			return true
		}
		select {
		case <-up:
		case <-c.ctx.Done():
			return false
		}
	}
}

// awaitSession returns the session once the client is Connected. If that takes longer than the
// connect timeout, it returns ErrNotConnected.
func (c *core) awaitSession(ctx context.Context) (*session.Session, error) {
	var found *session.Session
	err := c.await(ctx, func() (bool, error) {
		found = c.session
		return c.state == Connected && found.Ended() == nil, nil
	})
	return found, err
}

// awaitLink returns once s is the client's session and has a connection. If s has ended, it returns
// the cause; other errors are as with awaitSession.
func (c *core) awaitLink(ctx context.Context, s *session.Session) error {
	return c.await(ctx, func() (bool, error) {
		if err := s.Ended(); err != nil {
			return false, err
		}
		return c.state == Connected && c.session == s, nil
	})
}

// await waits until ready returns true or an error. It calls ready with mu held, at each
// transition.
func (c *core) await(ctx context.Context, ready func() (bool, error)) error {
	usercall.Require("ctx", ctx != nil)
	var timeout <-chan time.Time
	for {
		if timeout == nil && ctx.Err() != nil {
			return c.endedBefore(ctx)
		}
		c.mu.Lock()
		ok, err := ready()
		changed, state := c.changed, c.state
		c.mu.Unlock()
		switch {
		case c.ctx.Err() != nil: // first: at Close no other state follows at once
			return ErrClosed
		case err != nil:
			return err
		case ok:
			return nil
		case state == AuthFailed:
			return c.refusal()
		}
		if timeout == nil {
			timer := time.NewTimer(c.cfg.connectTimeout)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-changed:
		case <-timeout:
			return c.notConnected()
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), c.notConnected())
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// refusal returns why the client is AuthFailed: ErrAuthFailed, with what the server refused.
func (c *core) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.refusedBy, error(ErrAuthFailed))
}

// endedBefore returns the error of a call whose context had ended when the call began. It says why
// there is no connection if there is none.
func (c *core) endedBefore(ctx context.Context) error {
	switch c.presentState() {
	case Connecting, Suspended, Lost:
		return fmt.Errorf("%w: %w", ctx.Err(), c.notConnected())
	}
	return ctx.Err()
}

// notConnected returns ErrNotConnected with the last fault. That fault is of the network, so it
// names addresses and no secret. It is not wrapped, because a dial that took too long would match
// context.DeadlineExceeded although the caller's context has not ended.
func (c *core) notConnected() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastFault == nil {
		return fmt.Errorf("%w (%v)", ErrNotConnected, c.state)
	}
	return fmt.Errorf("%w (%v): %s", ErrNotConnected, c.state, c.lastFault.Error())
}
