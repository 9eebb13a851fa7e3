package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
)

// A Hold keeps the session's deadline fresh until it is released or the session has ended. The zero
// Hold is for [Session.Take]. Its methods may be called concurrently.
type Hold struct {
	session *Session    // immutable
	over    atomic.Bool // err is set; written with Session.mu held

	// guarded by Session.mu
	lost      chan struct{} // closed once, after err is set; nil until Lost is called
	secured   bool
	released  bool
	err       error
	onLost    func(cause error) // may be nil, as afterLost
	afterLost func()
}

// Take takes the hold h, and returns false if the session is over.
func (s *Session) Take(h *Hold) bool {
	h.session = s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.holds[h] = struct{}{}
	if len(s.holds) == 1 {
		s.heldSince = time.Now()
		s.Wake() // heartbeats begin
	}
	return true
}

// Session returns the session that is held.
func (h *Hold) Session() *Session { return h.session }

// wakeEvery is after how many secured holds the loop looks at the deadline again.
const wakeEvery = 1000

// Secure secures h if the session's deadline is far enough ahead; fresh reports whether it is. From
// then on, the session ends at its deadline.
func (h *Hold) Secure() (fresh bool, err error) {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.err != nil {
		return false, h.err
	}
	if h.secured || h.released {
		return true, nil
	}
	if !s.fresh() {
		return false, nil // too close: a heartbeat takes a round trip
	}
	h.secured = true
	if s.secured++; s.secured%wakeEvery == 1 {
		s.Wake() // the deadline counts from now on, or is earlier
	}
	return true, nil
}

// fresh reports whether the deadline is far enough ahead to secure a hold.
func (s *Session) fresh() bool {
	return time.Until(s.tap.Deadline()) > s.Timeout()/graceFraction
}

// AwaitFresh returns nil when a proof may have renewed the deadline. One proof may not be enough, so
// it paces callers that ask for another one.
func (s *Session) AwaitFresh(ctx context.Context) error {
	timer := time.NewTimer(s.cfg.Margin(s.Timeout()) / tap.ContactsPerMargin)
	defer timer.Stop()
	if s.fresh() {
		return nil
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// Lost returns a channel that is closed when the session is over, unless h is released first.
func (h *Hold) Lost() <-chan struct{} {
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
		if h.err != nil {
			close(h.lost)
		}
	}
	return h.lost
}

// OnLost registers fn, which is called when h is lost. The session's end waits for fn.
func (h *Hold) OnLost(fn func(cause error)) {
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
	h.onLost = fn
}

// AfterLost registers fn, which is called when h is lost and OnLost's functions of all the session's
// holds have returned. The session's end waits for fn.
func (h *Hold) AfterLost(fn func()) {
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
	h.afterLost = fn
}

// Err returns why h was lost, or nil. If the deadline has just passed, Err ends the session.
func (h *Hold) Err() error {
	if !h.over.Load() && h.session.tap.Stands() {
		return nil
	}
	h.session.expireIfDue()
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
	return h.err
}

// Release ends h. It may be called several times.
func (h *Hold) Release() {
	s := h.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.released || h.err != nil {
		return
	}
	h.released = true
	delete(s.holds, h)
	if h.secured {
		s.secured--
	}
}
