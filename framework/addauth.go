package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/usercall"
)

// AddAuth adds a credential to those that the client presents on every connection, as [WithAuth]
// does, and returns nil once a server has accepted it. It replaces an earlier credential of the
// same scheme; in the scheme "digest" the user has to be the same, too. So a password or a token
// can be rotated. ZooKeeper removes no identity from a connection: the replaced identity is gone
// with the next connection. All views of the client share the credentials.
//
// If the client is Connected, AddAuth presents the credential on the present connection. Otherwise
// the next connection presents it, and AddAuth waits for that; a client that is [AuthFailed]
// connects again at once. If ctx ends first, the credential may have been added; the error wraps
// ctx's error.
//
// If a server refuses the credential, the error wraps [ErrAuthFailed], and the client keeps its
// earlier credentials. The server closes the connection after a refusal; the session continues. The
// error also wraps ErrAuthFailed if the client stays AuthFailed for another reason; the new
// credential is kept then. Other errors: [ErrTooLarge], before anything is sent, and [ErrClosed].
// No error shows the credential.
func (c *Client) AddAuth(ctx context.Context, scheme string, secret []byte) error {
	usercall.Require("ctx", ctx != nil)
	return callError(ctx, "add auth", "", c.core.addAuth(ctx, credential{scheme, append([]byte(nil), secret...)}))
}

func (c *core) addAuth(ctx context.Context, added credential) error {
	if added.scheme == "" {
		return errors.New("scheme must not be empty")
	}
	if err := c.checkSize(added.size()); err != nil {
		return err
	}
	t := c.credentials.begin(added)
	defer c.credentials.withdraw(t)
	if s := c.refusedSession(); s != nil {
		s.Renew()
	}
	for {
		c.mu.Lock()
		state, s, changed := c.state, c.session, c.changed
		c.mu.Unlock()
		if state == Connected && ctx.Err() == nil && c.credentials.open(t) {
			c.present(ctx, s, t)
		}
		select {
		case <-t.done:
			return t.err
		case <-changed: // presenting failed: the state follows, and the next connection
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), c.notConnected())
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// refusedSession returns the session that is to be connected, if a server has refused a credential.
func (c *core) refusedSession() *session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != AuthFailed {
		return nil
	}
	return c.running
}

// present presents the credential of t on the present connection. If there is no reply, the trial t
// continues.
func (c *core) present(ctx context.Context, s *session.Session, t *trial) {
	accepted, err := session.Call(ctx, s, func(*zkconn.Conn) (bool, error) {
		return s.Present(t.credential.scheme, t.credential.secret)
	})
	if err != nil {
		return
	}
	c.credentials.answered(t, accepted)
	c.credentials.settle(nil)
}
