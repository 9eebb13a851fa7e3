package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
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
		s.renew()
	}
	for {
		c.mu.Lock()
		state, s, changed := c.state, c.session, c.changed
		c.mu.Unlock()
		if state == Connected && ctx.Err() == nil && c.credentials.open(t) {
			s.try(ctx, t)
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
func (c *core) refusedSession() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != AuthFailed {
		return nil
	}
	return c.running
}

// try presents the credential of t on the present connection. If there is no reply, the trial t
// continues.
func (s *session) try(ctx context.Context, t *trial) {
	body := tap.CredentialBody(t.credential.scheme, t.credential.secret)
	answer, err := call(ctx, s, func(*zkconn.Conn) (tap.Answer, error) {
		answer, err := s.tap.Ask(proto.OpAuth, body, maxAuthReply)
		return answer, askError(err)
	})
	if err != nil {
		return
	}
	s.core.credentials.answered(t, answer.Code == 0)
	s.core.credentials.settle(nil)
}

// maxAuthReply is more than the length of a server's reply to a credential.
const maxAuthReply = 1 << 10

// renew begins an attempt to connect at once. It ends a pause or the present attempt.
func (s *session) renew() {
	s.mu.Lock()
	leave := s.leave
	s.mu.Unlock()
	if leave != nil {
		leave(errRenewed)
	}
	s.tap.CloseConn(errRenewed)
	s.hosts.Renew() // last: the next attempt may have begun, and this ends it
}
