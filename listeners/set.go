package listeners

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Set calls its listeners on the goroutine that notifies. The zero value is
// empty and ready for use. A Set must not be copied after first use.
type Set[E any] struct {
	// OnPanic is called when a listener panicked, on the goroutine that
	// notifies. It must be set before the Set is used. If it is nil, a panic goes
	// on to the caller of Notify once the listeners that remain have been called.
	OnPanic func(*PanicError)

	mu      sync.Mutex   // guards following; never held while a listener runs
	members []*member[E] // in the order of registration; Notify reads it unlocked, so no element is overwritten
}

// A member is one registration with a Set.
type member[E any] struct {
	fn      func(E) // immutable
	removed atomic.Bool
}

// Add registers fn for the events of every Notify that begins from now on. It
// panics if fn is nil.
//
// Remove ends the registration. It returns at once: a call of fn that runs is
// not waited for, and a Notify that has begun skips fn unless it has come to it
// already.
func (s *Set[E]) Add(fn func(E)) (remove func()) {
	if fn == nil {
		panic("listeners: Set.Add: fn: must not be nil")
	}
	m := &member[E]{fn: fn}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = append(s.members, m)
	return func() { s.remove(m) }
}

func (s *Set[E]) remove(m *member[E]) {
	m.removed.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(slices.Clone(s.members), func(other *member[E]) bool { return other == m })
}

// Notify calls every listener with e, in the order of their registration, and returns when all have
// returned. If a listener panics, the others are still called; [Set.OnPanic] says where the panic
// goes.
func (s *Set[E]) Notify(e E) {
	s.mu.Lock()
	members := s.members
	s.mu.Unlock()
	s.notify(members, e)
}

func (s *Set[E]) notify(members []*member[E], e E) {
	next := 0
	defer func() {
		// Reached before the end only if a listener panics or ends the goroutine.
		// To go on from here, instead of recovering and panicking again, keeps
		// the panic's own stack trace.
		if next < len(members) {
			s.notify(members[next:], e)
		}
	}()
	for next < len(members) {
		m := members[next]
		next++
		if !m.removed.Load() {
			s.call(m.fn, e)
		}
	}
}

func (s *Set[E]) call(fn func(E), e E) {
	if s.OnPanic != nil {
		defer report(s.OnPanic)
	}
	fn(e)
}
