package membership

import (
	"context"
	"errors"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
)

// A Member is what a Set closes. Its user may close it before that.
type Member interface {
	Closed() bool
	Close(ctx context.Context) error
}

// A Set has the members that are open, by their keys. The zero Set is empty and open.
type Set struct {
	mu      sync.Mutex // guards following; never held across a request or a function
	members map[any]Member
	closed  bool
	room    int // of members, before closed ones are removed
}

// minRoom is how many members a Set has before it looks for closed ones.
const minRoom = 64

// ErrOpen is returned if the member of a key is open.
var ErrOpen = errtype.New("is open already", errtype.Other)

// Open calls open, which sends nothing, and adds the member that it returns. It returns ErrOpen if
// the key's member is open, and framework.ErrClosed after Close. open is not called then.
func Open[M Member](s *Set, key any, open func() (M, error)) (made M, err error) {
	slot := &opening{set: s, made: make(chan struct{})}
	if err := s.reserve(key, slot); err != nil {
		return made, err
	}
	var member Member
	defer func() { s.complete(key, slot, member) }() // even if a function of the user's panics
	if made, err = open(); err == nil {
		member = made
	}
	return made, err
}

// reserve adds the place of a member that is yet to be opened.
func (s *Set) reserve(key any, slot *opening) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return framework.ErrClosed
	}
	if other := s.members[key]; other != nil && !other.Closed() {
		return ErrOpen
	}
	s.addLocked(key, slot)
	return nil
}

// complete puts the member at its place. If it is nil, complete removes the place. If Close could not wait for the
// member, complete closes it: the error is that of Close's context, which Close has returned.
func (s *Set) complete(key any, slot *opening, m Member) {
	s.mu.Lock()
	switch {
	case s.closed: // Close has the place, and closes the member, unless it has left
	case m == nil:
		delete(s.members, key)
	default:
		s.members[key] = m
	}
	left := slot.left
	slot.member = m
	close(slot.made)
	s.mu.Unlock()
	if left != nil && m != nil {
		_ = m.Close(left)
	}
}

// An opening is the place of a member that is being opened, where options and a meter of the user's run.
type opening struct {
	set    *Set
	made   chan struct{}   // closed, with set.mu held, when member is set
	member Member          // nil if there is none
	left   context.Context // of a Close that did not wait any longer, else nil; guarded by set.mu
}

// Closed is part of [Member].
func (*opening) Closed() bool { return false }

// Close closes the member once it is open. If ctx ends first, complete does that.
func (o *opening) Close(ctx context.Context) error {
	select {
	case <-o.made:
	case <-ctx.Done():
		if o.leave(ctx) {
			return ctx.Err()
		}
	}
	if o.member == nil {
		return nil
	}
	return o.member.Close(ctx)
}

// leave lets complete close the member, and returns false if the member is made already.
func (o *opening) leave(ctx context.Context) bool {
	o.set.mu.Lock()
	defer o.set.mu.Unlock()
	select {
	case <-o.made:
		return false
	default:
		o.left = ctx
		return true
	}
}

// addLocked adds the member. It removes closed ones when the members have doubled since it did so
// last.
func (s *Set) addLocked(key any, m Member) {
	if len(s.members) >= max(s.room, minRoom) {
		for key, m := range s.members {
			if m.Closed() {
				delete(s.members, key)
			}
		}
		s.room = 2 * len(s.members)
	}
	if s.members == nil {
		s.members = make(map[any]Member)
	}
	s.members[key] = m
}

// Close closes all members, and returns the errors of that joined. A further Close does nothing.
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	members := s.members
	s.members, s.closed = nil, true
	s.mu.Unlock()
	faults := make([]error, 0, len(members))
	for _, m := range members {
		faults = append(faults, m.Close(ctx))
	}
	return errors.Join(faults...)
}
