package leader_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
)

// sessionAtStake is the session timeout of clients that lose their session by its time.
const sessionAtStake = 4 * time.Second

func newElection(t testing.TB, c *framework.Client, path string, opts ...leader.Option) *leader.Election {
	t.Helper()
	return must.Get(leader.New(c, path, opts...))(t)
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
