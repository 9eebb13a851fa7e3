package recipetest

import (
	"context"

	"github.com/docent-go/docent/recipes/lease"
)

// Permits is a semaphore as a lock: its holders have N of its permits.
type Permits struct {
	Semaphore interface {
		Acquire(ctx context.Context, n int) (*lease.Lease, error)
		TryAcquire(ctx context.Context, n int) (*lease.Lease, error)
	}
	N int
}

// Lock acquires the permits.
func (p Permits) Lock(ctx context.Context) (*lease.Lease, error) {
	return p.Semaphore.Acquire(ctx, p.N)
}

// TryLock tries to acquire the permits.
func (p Permits) TryLock(ctx context.Context) (*lease.Lease, error) {
	return p.Semaphore.TryAcquire(ctx, p.N)
}

// A Candidate is an election as a lock: the leader holds it.
type Candidate struct {
	Election interface {
		Campaign(ctx context.Context) (*lease.Lease, error)
	}
}

// Lock returns the lease of the leader.
func (c Candidate) Lock(ctx context.Context) (*lease.Lease, error) { return c.Election.Campaign(ctx) }

// TryLock panics.
func (c Candidate) TryLock(context.Context) (*lease.Lease, error) {
	panic("an election has no TryLock")
}
