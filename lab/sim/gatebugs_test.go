package sim_test

import (
	"context"
	"crypto/rand"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/lease"
)

// barrierBugs are, for each guarantee of barriers, what its validator has to find.
func barrierBugs() []deliberate {
	alone := first(func(int) int { return 1 })
	return []deliberate{
		{setHolds, "a client does not wait at a barrier", "and passes", func() bug {
			return bug{gate: func(g gate) gate { return openGate{g} }}
		}},
		{removedPasses, "a client waits at a barrier that is removed", "does not pass", func() bug {
			return bug{gate: func(g gate) gate { return closedGate{g} }}
		}},
		{allEnter, "a client takes the double barrier to have one member", "members of 1 clients", func() bug { return bug{number: alone} }},
		{allEnter, "a client has two members in a double barrier", "members of 1 clients, of 2, with 2 znodes", func() bug {
			return bug{meeter: func(f *framework.Client, d *barrier.Double) meeter { return double{d, f} }}
		}},
		{allEnter, "a client enters at another path", "no ready was created since", func() bug {
			b := astray(meetingPath)()
			b.number = alone
			return b
		}},
		{allLeave, "a member does not wait for the others to leave", "has left, and", func() bug {
			return bug{meeter: func(_ *framework.Client, d *barrier.Double) meeter { return hasty{d} }}
		}},
	}
}

// An openGate lets every client pass.
type openGate struct{ gate }

func (openGate) Wait(context.Context) error { return nil }

// A closedGate lets no client pass.
type closedGate struct{ gate }

func (closedGate) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A hasty member only releases its place.
type hasty struct{ *barrier.Double }

func (hasty) Leave(ctx context.Context, l *lease.Lease) error { return l.Release(ctx) }

// A double member has a znode that it has left behind, as if from a call that was withdrawn.
type double struct {
	*barrier.Double
	f *framework.Client
}

func (d double) Enter(ctx context.Context) (*lease.Lease, error) {
	former := zkpath.Join(meetingPath, rand.Text())
	_, _ = d.f.Create(ctx, former, nil, framework.Ephemeral())
	defer d.f.Discard(former)
	return d.Double.Enter(ctx)
}
