package hold

import (
	"context"
	"slices"
)

// A Share is one lease's part in a hold. Package lease has it as the Lease, which is this type with the
// methods for users.
type Share struct {
	hold    *Hold    // immutable, as are the following
	first   bool     // it is the hold's first share
	members []*Share // of a Multi's lease; nil for others

	// guarded by hold.mu
	released  bool
	contexts  map[*shareContext]struct{} // nil before the first
	onLost    func(error)                // nil if there is none, as afterLost
	afterLost func()
}

type shareContext struct{ cancel context.CancelCauseFunc }

// Hold returns the share's hold.
func (s *Share) Hold() *Hold { return s.hold }

// Members returns the shares that New got as members. They must not be changed.
func (s *Share) Members() []*Share { return s.members }

// Err returns the error of the loss, [ErrReleased] after a release, or nil. It notices a deadline
// that has just passed.
func (s *Share) Err() error {
	s.hold.Check()
	s.hold.mu.Lock()
	defer s.hold.mu.Unlock()
	return s.errLocked()
}

func (s *Share) errLocked() error {
	if s.released {
		return ErrReleased
	}
	return s.hold.err
}

// Lost returns a channel that is closed when the hold is lost.
func (s *Share) Lost() <-chan struct{} {
	h := s.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
		if h.err != nil {
			close(h.lost)
		}
	}
	return h.lost
}

// OnLost registers notify and after for the loss, as [Grant.OnLost] does. It reports false if the hold
// is lost or the share is released already. A share has one of each.
func (s *Share) OnLost(notify func(error), after func()) bool {
	s.hold.mu.Lock()
	defer s.hold.mu.Unlock()
	if s.errLocked() != nil {
		return false
	}
	s.onLost, s.afterLost = notify, after
	return true
}

// Context returns a context that is derived from parent and ends with the share. Its cause is the
// loss or [ErrReleased].
func (s *Share) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if s.first {
		parent = s.hold.Hooks.Carry(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	sc := &shareContext{cancel}
	mu := &s.hold.mu
	mu.Lock()
	err := s.errLocked()
	if err == nil {
		if s.contexts == nil {
			s.contexts = make(map[*shareContext]struct{})
		}
		s.contexts[sc] = struct{}{}
	}
	mu.Unlock()
	if err != nil {
		cancel(err)
	}
	return ctx, func() {
		mu.Lock()
		delete(s.contexts, sc)
		mu.Unlock()
		cancel(context.Canceled)
	}
}

func (s *Share) endContexts(cause error) {
	s.hold.mu.Lock()
	contexts := s.contexts
	s.contexts = nil
	s.hold.mu.Unlock()
	for sc := range contexts {
		sc.cancel(cause)
	}
}

// Release ends the share and, if it is the last, releases the hold.
func (s *Share) Release(ctx context.Context) error {
	last, err := s.Drop()
	if err != nil || !last {
		return err
	}
	return s.hold.release(ctx)
}

// Discard ends the share and, if it is the last, releases the hold in the background.
func (s *Share) Discard() {
	if last, _ := s.Drop(); last { // after an error there is nothing to discard
		s.hold.discard()
	}
}

// Drop ends the share and reports whether it was the last: then the caller has to release the hold.
// It returns an error if the hold is lost or the share was released before. If other shares remain,
// it does not check for a deadline that has just passed.
func (s *Share) Drop() (last bool, err error) {
	h := s.hold
	h.mu.Lock()
	if len(h.shares) == 1 && h.shares[0] == s {
		h.mu.Unlock()
		h.Check()
		h.mu.Lock()
	}
	if s.released {
		h.mu.Unlock()
		return false, ErrReleased
	}
	s.released = true
	s.onLost, s.afterLost = nil, nil
	if i := slices.Index(h.shares, s); i >= 0 {
		h.shares = slices.Delete(h.shares, i, i+1)
	}
	err = h.err
	last = len(h.shares) == 0 && err == nil
	inUse := s.contexts != nil
	h.mu.Unlock()
	if inUse {
		s.endContexts(ErrReleased)
	}
	if last {
		h.ended(nil)
	}
	return last, err
}
