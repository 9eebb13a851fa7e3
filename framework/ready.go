package framework

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/usercall"
)

// Ready returns nil if the client can work now. If so, it has a connection, and a quorum of the
// ensemble has committed a transaction of its session, sent after the call. The transaction changes
// nothing and needs no permission. A call costs the ensemble one such transaction.
//
// Ready is for health probes, so it waits for no connection and repeats nothing. If the client is
// not Connected, Ready returns [ErrNotConnected], [ErrReadOnly], [ErrAuthFailed] or [ErrClosed] at
// once. If ctx ends first, or the connection breaks, the error wraps [ErrUnknownOutcome], and ctx's
// error if ctx ended.
func (c *Client) Ready(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	s, err := c.core.connected()
	if err == nil {
		err = session.Effect(ctx, s, func(w *zkconn.Conn) error { return w.Prove() })
	}
	return callError(ctx, "ready", "", err)
}

// connected returns the session if the client is Connected.
func (c *core) connected() (*session.Session, error) {
	c.mu.Lock()
	state, s, fault := c.state, c.session, c.lastFault
	c.mu.Unlock()
	switch {
	case state == Connected && s.Ended() == nil:
		return s, nil
	case state == Closed || c.ctx.Err() != nil:
		return nil, ErrClosed
	case state == AuthFailed:
		return nil, c.refusal()
	case state == ReadOnly:
		return nil, ErrReadOnly
	case fault != nil:
		return nil, fmt.Errorf("%w (%v): %s", ErrNotConnected, state, fault.Error())
	}
	return nil, fmt.Errorf("%w (%v)", ErrNotConnected, state)
}
