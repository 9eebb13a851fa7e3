package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// An election is a target like a lock: its leader holds a lease, so the validators of exclusion, of
// loss before succession and of all others apply. Candidates call Campaign or Run.

// electionKind is the kind of the target.
const electionKind = "election"

func election() *recipe {
	return &recipe{
		name: electionKind, plan: (*plan).elect, met: append(comeAgain(electionKind), "grants election", "terms of Run"),
		lockers: map[string]lockerOf{electionKind: campaigns},
	}
}

// elect adds an election, with a candidate or two of each client.
func (p *plan) elect(r *rand.Rand) {
	t := newTarget("/sim/election", electionKind)
	p.targets = append(p.targets, t)
	p.contend(r, t)
}

// contend adds a worker or two of each client, which contend for the target.
func (p *plan) contend(r *rand.Rand, t *target) {
	for i := range p.clients {
		for range 1 + r.IntN(2) {
			p.clients[i].workers = append(p.clients[i].workers, workerPlan{seed: r.Uint64(), brisk: r.IntN(2) == 0, kinds: t.uses()})
		}
	}
}

// A candidate is an election as a lock.Locker. It has no TryLock, so that campaigns, too.
type candidate struct{ *leader.Election }

func (c candidate) Lock(ctx context.Context) (*lock.Lease, error)    { return c.Campaign(ctx) }
func (c candidate) TryLock(ctx context.Context) (*lock.Lease, error) { return c.Campaign(ctx) }

// campaigns makes the election at a path, with the client's options.
func campaigns(k *worker, f *framework.Client, at string, h *handle) error {
	c := k.c
	opts := []leader.Option{leader.WithID(canary)}
	if c.plan.onLoss {
		opts = append(opts, recipes.WithLossPolicy(lease.OnSuspend))
	}
	if c.plan.revoked {
		opts = append(opts, recipes.WithRevocation(c.asked))
	}
	e, err := leader.New(f, at, opts...)
	if err == nil {
		h.locker, h.list, h.run = candidate{e}, e.Participants, e.Run
	}
	return err
}

// errStepDown ends a Run.
var errStepDown = errors.New("the candidate steps down")

// run leads for one to three terms, and steps down, unless its context ends before. If the last term was lost, an
// error does not end Run, so it steps down in the next.
func (k *worker) run(h *handle) {
	c := k.call(8 * k.env.plan.timeout)
	defer c.stop()
	k.do("Run " + h.name)
	k.waits(h, false)
	defer k.waitEnded()
	terms := 1 + k.r.IntN(3)
	led := false
	err := h.run(c.ctx, func(ctx context.Context, term *lease.Lease) error {
		led, k.held = true, append(k.held, k.env.enter(k, k.f, h, term))
		k.waitEnded()
		k.workWithLatest(ctx, upTo(k.r, k.env.plan.timeout))
		k.env.count("terms of Run", 1)
		if terms--; terms <= 0 {
			return errStepDown
		}
		return nil
	})
	if led {
		c.ends = time.Time{} // a resignation has a limit of its own
	}
	switch {
	case err == nil:
		k.env.violated(nothingHidden, "Run of %s returned nil", h.name)
	case errors.Is(err, errStepDown):
		k.env.inspect(err)
	default:
		k.checkResult("Run", c, err)
		if c.ctx.Err() == nil && !errors.Is(err, framework.ErrClosed) && k.env.ctx.Err() == nil {
			k.env.violated(liveness, "Run of %s ended by itself: %v", h.name, err)
		}
	}
}
