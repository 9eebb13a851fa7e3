package lock

import (
	"context"
	"slices"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
)

// A Side is one of the two ways to hold a [RWMutex], and a [Locker]. Its
// methods may be called concurrently.
type Side struct {
	queueLock queueLock // immutable
	name      string    // immutable; "read" or "write"
}

// Lock waits until the caller has this side of the lock and returns a lease of
// it. An owner that has the side already gets a further lease at once, and so does one
// that asks for the read side while it has the write side. One that has the read
// side alone and asks for the write side gets [ErrUpgrade] at once.
//
// ctx bounds the wait only; if it ends first, the error wraps ctx's error, and the
// attempt's znode is gone or its deletion goes on in the background. Should the
// session end while Lock waits, it queues again in the next one. Other errors are
// those of the client, when its policy is exhausted: see package framework.
//
// Goroutines of one [Owner] go through the lock one at a time: while one of them
// waits for one side, another that asks for the other side waits for the outcome.
func (s *Side) Lock(ctx context.Context) (*Lease, error) {
	l, err := s.queueLock.acquire(ctx, callerOf(ctx), false)
	return l, s.callError(ctx, "lock", err)
}

// TryLock makes one attempt and returns a lease; or [ErrHeld] where that means to
// wait for other owners, be it for one who only waits; or [ErrUpgrade] as Lock does. It
// never waits for another holder; ctx bounds its requests. Where somebody can be
// seen to be in the way, and still can after a sync, it creates nothing.
func (s *Side) TryLock(ctx context.Context) (*Lease, error) {
	l, err := s.queueLock.acquire(ctx, callerOf(ctx), true)
	return l, s.callError(ctx, "try lock", err)
}

// Unlock releases the caller's latest lease of this side, as [Lease.Release] does.
// It returns [ErrNotOwner] if the caller has none, and a [*LostError] if it has
// only lost ones.
func (s *Side) Unlock(ctx context.Context) error {
	return s.queueLock.unlock(ctx, "unlock "+s.name+" side of")
}

// Held returns the caller's lock count of this side: how many leases it has that
// are neither released nor lost.
func (s *Side) Held(ctx context.Context) int { return s.queueLock.held(ctx) }

// Participants returns those who hold this side or wait for it, in the order of
// the queue; none if nobody is there. [RWMutex.Participants] has both sides'.
// The list is a snapshot of a moment that has passed.
func (s *Side) Participants(ctx context.Context) ([]Participant, error) {
	found, err := contender.Participants(cause.Inside(ctx), s.queueLock.queue)
	if err != nil {
		return nil, s.callError(ctx, "participants", err)
	}
	return slices.DeleteFunc(found, func(p Participant) bool { return p.Kind != s.queueLock.kind }), nil
}

// Path returns the lock's path.
func (s *Side) Path() string { return s.queueLock.path }

func (s *Side) callError(ctx context.Context, op string, err error) error {
	return callError(ctx, op+" "+s.name+" side of", s.queueLock.path, err)
}
