package fault

import (
	"context"
	"time"
)

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

// Released returns a channel that is closed when the rule has been released.
func (s *Injection) Released() <-chan struct{} { return s.handle.released }

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
