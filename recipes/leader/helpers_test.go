package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// sessionAtStake is the session timeout of clients that lose their session by its time.
const sessionAtStake = 4 * time.Second

func newElection(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *leader.Election {
	t.Helper()
	return must.Get(leader.New(c, path, opts...))(t)
}

// A candidate is an election as a lock.Locker: who leads has the lock.
type candidate struct{ *leader.Election }

func (c candidate) Lock(ctx context.Context) (*lock.Lease, error) { return c.Campaign(ctx) }

func (c candidate) TryLock(context.Context) (*lock.Lease, error) {
	panic("an election has no TryLock")
}

// mustLead campaigns or fails the test.
func mustLead(t testing.TB, e *leader.Election) *lease.Lease {
	t.Helper()
	return must.Get(e.Campaign(recipetest.Patient(t)))(t)
}

func mustResign(t testing.TB, term *lease.Lease) {
	t.Helper()
	must.OK(t, term.Release(t.Context()))
}
