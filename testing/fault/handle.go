package fault

import (
	"context"
	"time"
)

// A Handle is a test's hold on a rule that it has added to [Rules].
type Handle struct {
	rules    *Rules        // immutable; its mu guards the counts
	rule     Rule          // immutable
	hit      chan struct{} // closed by the first landing, under rules.mu
	released chan struct{} // closed by Release, under rules.mu

	skip    int  // frames still to pass
	left    int  // claims still to be had; Forever has no end
	pending int  // claims that have neither landed nor been abandoned
	hits    int  // claims that have landed
	retired bool // Remove or Release has been called
	opened  bool // Release has been called
}

// Hit returns a channel that is closed when the rule has hit for the first time. At
// what moment a rule hits is said where its [Action] is defined.
func (h *Handle) Hit() <-chan struct{} { return h.hit }

// Hits returns how often the rule has hit.
func (h *Handle) Hits() int {
	h.rules.mu.Lock()
	defer h.rules.mu.Unlock()
	return h.hits
}

// Remove takes the rule out of force: it claims no further frame. The rule still completes what it
// has already claimed. In particular, frames that it holds stay held until Release. Further calls
// do nothing.
func (h *Handle) Remove() {
	h.rules.mu.Lock()
	defer h.rules.mu.Unlock()
	h.retireLocked()
	h.rules.tidyLocked()
}

// Release takes the rule out of force and lets everything go that it holds or delays,
// in order. It doesn't wait for the frames to be delivered. Further calls do
// nothing.
func (h *Handle) Release() {
	h.rules.mu.Lock()
	defer h.rules.mu.Unlock()
	h.retireLocked()
	if !h.opened {
		h.opened = true
		close(h.released)
	}
	h.rules.tidyLocked()
}

func (h *Handle) retireLocked() {
	h.retired = true
	h.left = 0
}

// claimLocked takes one of the claims that are left.
func (h *Handle) claimLocked() *Injection {
	if h.left != Forever {
		h.left--
	}
	h.pending++
	return &Injection{handle: h}
}

// spentLocked reports whether the rule can neither claim a frame, get a claim back
// nor hold anything.
func (h *Handle) spentLocked() bool {
	if h.left != 0 {
		return false
	}
	if h.rule.Action.holds() || h.rule.Action.delays() {
		return h.opened
	}
	return h.retired || h.pending == 0
}

// A Injection is the claim of a rule on one frame. It is for those who carry frames
// and consult [Rules]; a test has no use for it.
type Injection struct {
	handle *Handle // immutable
	ended  bool    // landed or abandoned; guarded by handle.rules.mu
}

// Action returns the fault of the frame; it is never [Pass].
func (s *Injection) Action() Action { return s.handle.rule.Action }

// Code returns the error code of a [Refuse], and 0 with any other Action.
func (s *Injection) Code() Code { return s.handle.rule.Code }

// Commit counts the rule's hit. The carrier calls it at the moment that the Action's
// documentation names. It does nothing on an injection that has landed or been
// abandoned.
func (s *Injection) Commit() {
	s.handle.rules.mu.Lock()
	defer s.handle.rules.mu.Unlock()
	s.commitLocked()
	s.handle.rules.tidyLocked()
}

// Cancel gives the claim back, so that the rule can claim another frame for it,
// unless it has been removed. The carrier calls it for a frame whose turn will
// not come. It does nothing on an injection that has landed or been abandoned, and
// on nil.
func (s *Injection) Cancel() {
	if s == nil {
		return
	}
	s.handle.rules.mu.Lock()
	defer s.handle.rules.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	h := s.handle
	h.pending--
	if h.left != Forever && !h.retired {
		h.left++
	}
	h.rules.tidyLocked()
}

// Wait returns when a frame that arrived at the given time may go. With an Action that holds, that
// is when the rule has been released. With one that delays, it is when the Delay has passed since
// the arrival or the rule has been released. With any other, Wait returns at once. It returns
// ctx's error if ctx ends first, and nil otherwise.
func (s *Injection) Wait(ctx context.Context, arrived time.Time) error {
	rule := s.handle.rule
	var elapsed <-chan time.Time
	switch {
	case rule.Action.delays():
		timer := time.NewTimer(time.Until(arrived.Add(rule.Delay)))
		defer timer.Stop()
		elapsed = timer.C
	case !rule.Action.holds():
		return nil
	}
	select {
	case <-s.handle.released:
		return nil
	case <-elapsed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Injection) commitLocked() {
	if s.ended {
		return
	}
	s.ended = true
	h := s.handle
	h.pending--
	h.hits++
	if h.hits == 1 {
		close(h.hit)
	}
}
