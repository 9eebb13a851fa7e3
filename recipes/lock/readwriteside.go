package lock

import (
	"context"
	"slices"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
)

// A Side is one of the two ways to hold an [RWMutex], and a [Locker]. Its methods may be called
// concurrently.
type Side struct {
	queueLock queueLock // immutable
	name      string    // immutable; "read" or "write"
}

// Lock waits until the caller holds this side of the lock and returns a lease of it. An owner that
// holds the side already, or holds the write side and asks for the read side, gets the lease at
// once. An owner that holds only the read side and asks for the write side gets [ErrUpgrade] at
// once.
//
// ctx bounds the wait only. If ctx ends first, the error is a [*WaitError] that wraps ctx's error.
// The attempt's znode is then gone, or its deletion continues in the background. If the session
// ends while Lock waits, Lock queues again in the next session. Other errors are the client's, when
// its retry policy is exhausted: see package framework.
//
// Goroutines of one [Owner] acquire one at a time: while one of them waits for one side, another
// that asks for the other side waits for the outcome.
func (s *Side) Lock(ctx context.Context) (*Lease, error) {
	l, err := s.queueLock.acquire(ctx, callerOf(ctx), false)
	return l, s.callError(ctx, "lock", err)
}

// TryLock makes one attempt and returns a lease. It returns [ErrHeld] if it would have to wait for
// another owner, even for one that only waits, and [ErrUpgrade] as Lock does. It never waits for
// another holder; ctx and the connect timeout bound its requests: see [Locker]. If a listing shows a
// predecessor, and still does after a sync, it creates nothing.
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

// Held returns the caller's lock count of this side: the number of its leases that are neither
// released nor lost.
func (s *Side) Held(ctx context.Context) int { return s.queueLock.held(ctx) }

// Participants returns the holders and waiters of this side, in the order of the queue, or none.
// [RWMutex.Participants] has both sides'. The list is a snapshot of a moment that has passed.
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
