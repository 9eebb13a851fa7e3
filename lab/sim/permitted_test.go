package sim_test

import (
	"context"
	"math/rand/v2"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
)

// A semaphore is a target that leases share. A lease of several permits has a stake for each, so
// loss before succession and all other guarantees apply to each permit's znode.

// permitsKind is the kind of the target, and permitsPath its path.
const permitsKind, permitsPath = "permits", "/sim/permits"

// semaphorePermits is how many permits the semaphore has.
const semaphorePermits = 3

func permitted() *recipe {
	return &recipe{
		name: permitsKind, oneIn: 15, plan: (*plan).permit, live: (*environment).permit, bugs: permitBugs(),
		guarantees: []guarantee{atMostN, allAtOnce, permitsReturn},
		met:        append(comeAgain(permitsKind), "grants permits", "grants of 1", "grants of 3", "permits shared", "turns checked", "all permits at the end"),
		lockers:    map[string]lockerOf{permitsKind: acquires},
	}
}

// permit adds a semaphore, with a contender or two of each client.
func (p *plan) permit(r *rand.Rand) {
	t := newTarget(permitsPath, permitsKind)
	t.permits = semaphorePermits
	p.targets = append(p.targets, t)
	p.contend(r, t)
}

// A taker is a semaphore as a lock.Locker, of which it acquires n permits at a time.
type taker struct {
	*semaphore.Semaphore
	n int
}

func (s taker) Lock(ctx context.Context) (*lock.Lease, error)    { return s.Acquire(ctx, s.n) }
func (s taker) TryLock(ctx context.Context) (*lock.Lease, error) { return s.TryAcquire(ctx, s.n) }

// acquires makes the semaphore at a path. The worker always acquires the same number of permits.
func acquires(k *worker, f *framework.Client, at string, h *handle) error {
	opts := []semaphore.Option{recipes.WithData([]byte(canary))}
	if k.c.plan.onLoss {
		opts = append(opts, recipes.WithLossPolicy(lease.OnSuspend))
	}
	if k.c.plan.position {
		opts = append(opts, recipes.WithQueuePosition(func(int) {}))
	}
	s, err := semaphore.New(f, at, k.env.bug.number(k.c, semaphorePermits), opts...)
	if err == nil {
		h.permits = 1 + rand.New(rand.NewPCG(k.plan.seed, 16)).IntN(semaphorePermits)
		h.locker, h.list = taker{s, h.permits}, s.Participants
	}
	return err
}

// permit checks the permits when all is well and the workers have ended.
func (env *environment) permit() (end func()) { return env.checkReturned }
