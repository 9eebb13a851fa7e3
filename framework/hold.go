package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/usercall"
)

// A SessionHold keeps one session's deadline fresh, because ephemeral znodes in that session matter
// to its owner. If the client's own writes don't keep the deadline fresh, the client sends
// heartbeats: every quarter of the session timeout, the quorum commits a transaction that changes
// nothing. A hold comes from [Client.HoldSession] and ends with [SessionHold.Release].
//
// A hold can be secured. From then on, when the deadline passes, the client abandons the session at
// once and the hold is lost. The deadline is before the ensemble can expire the session. So the
// hold is lost before another client can be granted what this hold protects. With many secured
// holds, the client begins earlier, 4 µs for each hold, so that all are lost by the deadline. It
// begins at most a sixteenth of the session timeout earlier.
//
// Its methods may be called concurrently.
type SessionHold struct {
	client *Client
	hold   session.Hold
}

// HoldSession takes a hold on the client's present session. If there is none, it waits for the next
// session until ctx ends. A view of [Client.InSession] holds its session alone, and is closed with it.
// The error is an [OpError] that wraps [ErrClosed], [ErrReadOnly] or ctx's error.
func (c *Client) HoldSession(ctx context.Context) (*SessionHold, error) {
	for {
		s, err := c.core.sessionFor(ctx, c.session, false)
		if c.session != 0 && errors.Is(err, ErrSessionEnded) {
			err = c.viewClosed()
		}
		if errors.Is(err, ErrNotConnected) && !errors.Is(err, ctx.Err()) {
			continue // it has waited
		}
		if err != nil {
			return nil, c.callError(ctx, "hold session", "", err)
		}
		h := &SessionHold{client: c}
		if s.Take(&h.hold) {
			return h, nil
		}
		select { // it is ending, and its holds are being notified
		case <-s.Context().Done():
		case <-ctx.Done():
		}
	}
}

// Session returns the id of the session.
func (h *SessionHold) Session() int64 { return h.hold.Session().ID() }

// Deadline returns the moment until which the session is certainly valid: an ensemble that keeps
// time does not expire it earlier. The deadline moves on while servers prove the session. It is
// fresh only while there is a hold; [Session.Deadline] has the details.
func (h *SessionHold) Deadline() time.Time { return h.hold.Session().Deadline() }

// Secure binds the hold to the session's deadline. Once it has returned nil, [SessionHold.Lost] is
// closed when the deadline passes, and was not closed before. If the deadline has passed or is
// about to pass, because nothing was proven recently, Secure asks the ensemble for a proof first.
// It waits for the reply as long as the session may last. If ctx ends before that, the hold is not
// secured and the error wraps ctx's error. Once the session is over, the error is its cause, which
// wraps [ErrSessionEnded] or [ErrClosed].
func (h *SessionHold) Secure(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	for {
		fresh, err := h.hold.Secure()
		if err != nil || fresh {
			return h.client.callError(ctx, "secure session", "", err)
		}
		err = h.client.core.prove(ctx, h.hold.Session())
		if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // both at once
		}
		if err != nil && (ctx.Err() != nil || !errors.Is(err, ErrNotConnected)) {
			return h.client.callError(ctx, "secure session", "", err)
		}
	}
}

// prove asks the ensemble for a proof that s exists.
func (c *core) prove(ctx context.Context, s *session.Session) error {
	if err := c.awaitConnection(ctx, s); err != nil {
		return err
	}
	err := session.Effect(ctx, s, requests.Prove())
	if err != nil && ctx.Err() != nil {
		return err
	}
	return s.AwaitFresh(ctx)
}

// Lost returns a channel that is closed when the session is over. If the hold is secured, that is
// when the deadline passes at the latest. The channel stays open if the hold is released first.
func (h *SessionHold) Lost() <-chan struct{} { return h.hold.Lost() }

// OnLost registers fn, which is called when the hold is lost, with the error that [SessionHold.Err]
// returns from then on. It is called once all holds and leases of the session are lost, on another
// goroutine, so that fn delays none of them. The end of the session waits for fn for up to five
// seconds, and so does Close before it closes the session at the ensemble. fn is not called if the hold
// is lost already, or if it is released first. It may call the client. There is one fn at a time. The
// functions of several holds may be called concurrently.
func (h *SessionHold) OnLost(fn func(cause error)) {
	usercall.Require("fn", fn != nil)
	h.hold.OnLost(fn)
}

// AfterLost registers fn, which is called when the hold is lost, after OnLost's functions of all holds
// of the session have returned. The functions of several holds are called one after another. The end
// of the session, and Close, wait for them as they do for OnLost's.
func (h *SessionHold) AfterLost(fn func()) {
	usercall.Require("fn", fn != nil)
	h.hold.AfterLost(fn)
}

// OnLoss registers, for a recipe, what ends its leases when the hold is lost. The client calls lose at
// the deadline, before another client can be granted what the hold protects, with the error that
// [SessionHold.Err] returns from then on. lose closes channels and ends contexts. It must not block,
// call a function of a user's, log or do I/O, nor take a mutex that is held over any of these: the
// other leases of the session wait for it. after does the rest, on another goroutine, once all
// leases of the session are lost. Neither is called if the hold is lost already, or if it is released
// first. There is one pair of functions at a time. [SessionHold.OnLost] is for all else.
func (h *SessionHold) OnLoss(lose func(cause error), after func()) {
	usercall.Require("lose", lose != nil)
	usercall.Require("after", after != nil)
	h.hold.OnLoss(lose, after)
}

// Err returns why the hold was lost, or nil. The error wraps [ErrSessionEnded] or [ErrClosed]. If
// the deadline has just passed, Err itself notices that.
func (h *SessionHold) Err() error { return h.hold.Err() }

// Breaks returns how often the client has left the state Connected so far. If two numbers are
// equal, the connection did not break in between; a listener that is registered in between could
// not report that. Breaks takes no lock.
func (h *SessionHold) Breaks() int64 { return h.client.core.breaks.Load() }

// Release ends the hold. It may be called several times.
func (h *SessionHold) Release() { h.hold.Release() }
