package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
)

// A Hold keeps the session's deadline fresh until it is released or the session has ended. The zero
// Hold is for [Session.Take]. Its methods may be called concurrently.
type Hold struct {
	session *Session    // immutable
	over    atomic.Bool // err is set; written with holdSet.mu held

	// guarded by holdSet.mu
	lost      chan struct{} // closed once, after err is set; nil until Lost is called
	secured   bool
	released  bool
	err       error
	lose      func(cause error) // for a recipe; may be nil, as those that follow; none changes once err is set
	after     func()            // for a recipe; not nil if lose is not
	onLost    func(cause error) // for a user, as afterLost
	afterLost func()
}

// Take takes the hold h, and returns false if the session is over.
func (s *Session) Take(h *Hold) bool {
	h.session = s
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	if s.holds.err != nil {
		return false
	}
	s.holds.members[h] = struct{}{}
	if len(s.holds.members) == 1 {
		s.holds.since = time.Now()
		s.Wake() // heartbeats begin
	}
	return true
}

// A heldNow says what is held at one moment.
type heldNow struct {
	holds, secured int
	since          time.Time // when the first of the holds was taken
}

func (s *Session) heldNow() heldNow {
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	return heldNow{len(s.holds.members), s.holds.secured, s.holds.since}
}

// loseLocked loses h for the cause. It needs holdSet.mu.
func (h *Hold) loseLocked(cause error) {
	h.err = cause
	h.over.Store(true)
	if h.lost != nil {
		close(h.lost)
	}
}

// Session returns the session that is held.
func (h *Hold) Session() *Session { return h.session }

// earlierEvery is after how many secured holds the deadline is a millisecond earlier.
const earlierEvery = int(time.Millisecond / notifyTime)

// Secure secures h if the session's deadline is far enough ahead; fresh reports whether it is. From
// then on, the session ends at its deadline.
func (h *Hold) Secure() (fresh bool, err error) {
	s := h.session
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
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
	if s.holds.secured++; s.holds.secured == 1 || s.holds.secured%earlierEvery == 0 {
		s.setTimerLocked() // the deadline counts from now on, or is earlier
	}
	return true, nil
}

// fresh reports whether the deadline is far enough ahead to secure a hold.
func (s *Session) fresh() bool {
	return time.Until(s.wire.Status().Deadline) > s.Timeout()/graceFraction
}

// AwaitFresh returns nil when a proof may have renewed the deadline. One proof may not be enough, so
// it paces callers that ask for another one.
func (s *Session) AwaitFresh(ctx context.Context) error {
	timer := time.NewTimer(s.cfg.Margin(s.Timeout()) / wire.ContactsPerMargin)
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
	h.session.holds.mu.Lock()
	defer h.session.holds.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
		if h.err != nil {
			close(h.lost)
		}
	}
	return h.lost
}

// OnLoss registers what a recipe does when h is lost: lose before another client can be granted what h
// protects, and then after. lose must not block. It must not call a function of the user's, log, or do
// I/O, nor take a mutex that is held over any of these.
func (h *Hold) OnLoss(lose func(cause error), after func()) {
	h.unlessLost(func() { h.lose, h.after = lose, after })
}

// unlessLost calls register, with holdSet.mu held, unless h is lost already.
func (h *Hold) unlessLost(register func()) {
	h.session.holds.mu.Lock()
	defer h.session.holds.mu.Unlock()
	if h.err == nil {
		register()
	}
}

// OnLost registers the user's fn, which is called when h is lost, after all leases of recipes. The
// session's end waits for fn, for a limited time.
func (h *Hold) OnLost(fn func(cause error)) { h.unlessLost(func() { h.onLost = fn }) }

// AfterLost registers the user's fn, which is called when h is lost and OnLost's functions of all the
// session's holds have returned. The session's end waits for fn, for a limited time.
func (h *Hold) AfterLost(fn func()) { h.unlessLost(func() { h.afterLost = fn }) }

// Err returns why h was lost, or nil. If the deadline has just passed, Err ends the session.
func (h *Hold) Err() error {
	if !h.over.Load() && h.session.wire.InTime() {
		return nil
	}
	h.session.expireIfDue()
	h.session.holds.mu.Lock()
	defer h.session.holds.mu.Unlock()
	return h.err
}

// Release ends h. It may be called several times.
func (h *Hold) Release() {
	s := h.session
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	if h.released || h.err != nil {
		return
	}
	h.released = true
	delete(s.holds.members, h)
	if h.secured {
		s.holds.secured--
	}
}
