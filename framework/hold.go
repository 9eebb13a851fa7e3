package framework

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A SessionHold is an interest in one session: somebody's ephemeral znodes in it
// mean something to them. While there is one, the client keeps the session's
// deadline fresh: if its own writes do not, it has the quorum commit transactions that
// change nothing, every quarter of the session timeout. A
// hold comes from [Client.HoldSession] and ends with [SessionHold.Release].
//
// A hold can be secured. From then on the session is given up, and the hold
// lost, the moment the deadline passes: before the ensemble can expire the
// session, so before anybody else can be granted what this one holds.
//
// Its methods may be called concurrently.
type SessionHold struct {
	session *session    // immutable
	over    atomic.Bool // err is set; written with session.mu held

	// guarded by session.mu
	lost     chan struct{} // closed by the session, once, with err set first; nil while nobody has asked for it
	secured  bool
	released bool
	err      error
	onLost   func(cause error) // nil for nobody
}

// HoldSession takes a hold on the session that the client has now, or on the
// next one if there is none: it waits for that until ctx ends. The error is an
// [OpError] that wraps [ErrClosed], [ErrReadOnly] or ctx's error.
func (c *Client) HoldSession(ctx context.Context) (*SessionHold, error) {
	for {
		s, err := c.core.awaitServer(ctx, false)
		if errors.Is(err, ErrNotConnected) && !errors.Is(err, ctx.Err()) {
			continue // it has waited
		}
		if err != nil {
			return nil, callError(ctx, "hold session", "", err)
		}
		if h, ok := s.hold(); ok {
			return h, nil
		}
		select { // it is ending: those who hold it are being told
		case <-s.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// Session returns the id of the session.
func (h *SessionHold) Session() int64 { return h.session.ID() }

// Deadline returns until when the session certainly stands: no ensemble that
// keeps time expires it earlier. The deadline moves on while servers prove,
// and it is fresh only while a hold stands; see [Session.Deadline].
func (h *SessionHold) Deadline() time.Time { return h.session.tap.Deadline() }

// Secure binds the hold to the session's deadline: once it returned nil,
// [SessionHold.Lost] is closed when the deadline passes, and was not closed
// before. If the deadline has passed or is about to pass, because nothing was proven
// for a while, it asks the ensemble first, and waits as long for the answer as the session
// can stand. If ctx ends before that, the hold is not secured and the error wraps
// ctx's. Once the session is over it returns
// what ended it, which wraps [ErrSessionEnded] or [ErrClosed].
func (h *SessionHold) Secure(ctx context.Context) error {
	for {
		fresh, err := h.session.secure(h)
		if err != nil || fresh {
			return callError(ctx, "secure session", "", err)
		}
		err = h.session.prove(ctx)
		if err != nil && (ctx.Err() != nil || !errors.Is(err, ErrNotConnected)) {
			return callError(ctx, "secure session", "", err)
		}
	}
}

// Lost returns a channel that is closed when the session is over, or, for a
// secured hold, when its deadline passes, which ends it. It stays open if
// the hold is released before that.
func (h *SessionHold) Lost() <-chan struct{} { return h.session.lostOf(h) }

// OnLost has fn called when the hold is lost, with what [SessionHold.Err] returns from
// then on. What ends the session waits for fn, so Close does before it tells the
// ensemble: who passes the loss on by fn has done so before anybody else can be
// granted what this hold was for. fn is not called where the hold is lost already,
// and not if it is released first. fn must not block. It may call the client, but not Close,
// which waits for it. There is one fn at a time.
func (h *SessionHold) OnLost(fn func(cause error)) { h.session.onLost(h, fn) }

// Err returns why the hold was lost, or nil. The error wraps [ErrSessionEnded]
// or [ErrClosed]. A deadline that has just passed is noticed by this call itself.
func (h *SessionHold) Err() error {
	if !h.over.Load() && h.session.tap.Stands() {
		return nil
	}
	h.session.expireIfDue()
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
	return h.err
}

// Breaks returns how often the client has left the state Connected so far. Two equal numbers mean
// that the connection did not break in between: a listener that is registered in between could
// not tell. It takes no lock.
func (h *SessionHold) Breaks() int64 { return h.session.core.breaks.Load() }

// Release ends the interest. It may be called several times.
func (h *SessionHold) Release() { h.session.release(h) }
