package recipetest

import (
	"context"

	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/semaphore"
)

// Permits is a semaphore as a lock: its holders have N of its permits.
type Permits struct {
	*semaphore.Semaphore
	N int
}

func (p Permits) Lock(ctx context.Context) (*lease.Lease, error)    { return p.Acquire(ctx, p.N) }
func (p Permits) TryLock(ctx context.Context) (*lease.Lease, error) { return p.TryAcquire(ctx, p.N) }

// A Candidate is an election as a lock: who leads has the lock.
type Candidate struct{ *leader.Election }

func (c Candidate) Lock(ctx context.Context) (*lease.Lease, error) { return c.Campaign(ctx) }

func (c Candidate) TryLock(context.Context) (*lease.Lease, error) {
	panic("an election has no TryLock")
}
