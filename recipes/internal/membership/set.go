package membership

import (
	"context"
	"errors"
	"sync"

	"github.com/docent-go/docent/framework"
)

// A Member is what a Set closes. Its user may close it before that.
type Member interface {
	Closed() bool
	Close(ctx context.Context) error
}

// A Set has the members that are open, by their keys. The zero Set is empty and open.
type Set struct {
	mu      sync.Mutex // guards following; never held across a request
	members map[any]Member
	closed  bool
	room    int // of members, before closed ones are removed
}

// minRoom is how many members a Set has before it looks for closed ones.
const minRoom = 64

// ErrOpen is returned if the member of a key is open.
var ErrOpen = errors.New("is open already")

// Open calls open, which sends nothing, and adds the member that it returns. It returns ErrOpen if
// the key's member is open, and framework.ErrClosed after Close. open is not called then.
func Open[M Member](s *Set, key any, open func() (M, error)) (made M, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return made, framework.ErrClosed
	}
	if other := s.members[key]; other != nil && !other.Closed() {
		return made, ErrOpen
	}
	if made, err = open(); err != nil {
		return made, err
	}
	s.addLocked(key, made)
	return made, nil
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
