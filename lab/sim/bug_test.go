package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/node"
)

// A lockerBug returns what a worker locks in the place of a handle's locker.
type lockerBug func(k *worker, f *framework.Client, h *handle) lock.Locker

// A bug is something that is broken on purpose, from outside: nothing of it is in what
// users get. See sound.
type bug struct {
	locker   lockerBug
	fence    func(*environment, *lock.Lease) int64
	read     lockerBug // who has the write side takes the read side by it
	guards   func(*lock.Lease) []framework.TxnOp
	dialed   func(net.Conn) net.Conn
	listener func(func(framework.StateChange)) func(framework.StateChange)
	err      func(error) error
	do       func(context.Context, lock.Locker, work) error // in place of lock.Do
	events   func(func(cache.Event)) func(cache.Event)
	harm     func(*environment)

	at        func(c *client, path string) string             // where a client looks for what is at the path
	number    func(c *client, n int) int                      // how many of n permits or members a client knows of
	adder     func(adder) adder                               // how a client counts
	gate      func(gate) gate                                 // what clients wait at
	value     func(*counter.Value[int64]) value               // how it replaces the value
	meeter    func(*framework.Client, *barrier.Double) meeter // what members meet by
	close     func(*framework.Client, *node.Node) closer      // how a client closes a Node
	instances func(stale bool, list []instance) []instance    // what a client takes for a list
	end       func()
	plan      func(*plan) // what else each schedule has
}

// sound is the bug that breaks nothing.
func sound() bug {
	return bug{
		locker:    func(_ *worker, _ *framework.Client, h *handle) lock.Locker { return h.locker },
		fence:     func(_ *environment, l *lock.Lease) int64 { return l.Fence() },
		read:      func(_ *worker, _ *framework.Client, h *handle) lock.Locker { return h.downgrade },
		guards:    (*lock.Lease).Guards,
		dialed:    as[net.Conn],
		listener:  as[func(framework.StateChange)],
		err:       as[error],
		do:        func(ctx context.Context, l lock.Locker, fn work) error { return lock.Do(ctx, l, fn) },
		events:    as[func(cache.Event)],
		harm:      func(*environment) {},
		at:        func(_ *client, path string) string { return path },
		number:    func(_ *client, n int) int { return n },
		adder:     as[adder],
		gate:      as[gate],
		value:     func(v *counter.Value[int64]) value { return v },
		meeter:    func(_ *framework.Client, d *barrier.Double) meeter { return d },
		close:     func(_ *framework.Client, n *node.Node) closer { return n },
		instances: func(_ bool, list []instance) []instance { return list },
		end:       func() {},
		plan:      func(*plan) {},
	}
}

func as[T any](v T) T { return v }

// work is what runs under a lock.
type work = func(context.Context, *lock.Lease) error

// first has the first client take something else in the place of v.
func first[T any](instead func(T) T) func(*client, T) T {
	return func(c *client, v T) T {
		if c == c.env.clients[0] {
			return instead(v)
		}
		return v
	}
}

// astray sends the first client to another path for what others have at the root or below.
func astray(root string) func(*bug) {
	return func(b *bug) {
		b.at = first(func(path string) string {
			if strings.HasPrefix(path, root) {
				return path + "-other"
			}
			return path
		})
	}
}

// hopeful is a Do that returns fn's error alone, whatever became of the lock.
func hopeful(ctx context.Context, l lock.Locker, fn work) error {
	called := false
	var worked error
	err := lock.Do(ctx, l, func(ctx context.Context, l *lock.Lease) error {
		called, worked = true, fn(ctx, l)
		return worked
	})
	if called {
		return worked
	}
	return err
}

// patient is a Do that waits for the release and reports what became of the lease meanwhile.
func patient(ctx context.Context, l lock.Locker, fn work) error {
	lease, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()
	held, cancel := lease.Context(ctx)
	defer cancel()
	err = fn(held, lease)
	select {
	case <-lease.Lost():
	case <-time.After(2 * time.Minute):
	}
	return errors.Join(err, lease.Err())
}

// A wrapped locker asks another one its own way.
type wrapped struct {
	lock, try func(context.Context) (*lock.Lease, error)
}

func (l wrapped) Lock(ctx context.Context) (*lock.Lease, error)    { return l.lock(ctx) }
func (l wrapped) TryLock(ctx context.Context) (*lock.Lease, error) { return l.try(ctx) }

// A deliberate bug is one that a validator has to find.
type deliberate struct {
	guarantee guarantee
	what      string
	says      string       // is in the validator's report
	make      func(b *bug) // of sound
}

// seedsToFind are the schedules within which a deliberate bug has to show.
const seedsToFind = 60

// TestEveryValidatorFindsItsBug breaks something for each validator: a check that
// can't fail is no check.
func TestEveryValidatorFindsItsBug(t *testing.T) {
	bugs, all := allBugs(), guarantees()
	for _, x := range allRecipes() {
		all = append(all, x.guarantees...)
	}
	for _, g := range all {
		if !slices.ContainsFunc(bugs, func(b deliberate) bool { return b.guarantee == g }) {
			t.Errorf("there is no bug for the validator of %s", g)
		}
	}
	for _, b := range bugs {
		t.Run(string(b.guarantee)+": "+b.what, func(t *testing.T) {
			for seed := uint64(1); seed <= seedsToFind; seed++ {
				bug, p := sound(), newPlan(seed)
				b.make(&bug)
				bug.plan(p)
				env := simulate(t, newEnvironment(p, bug))
				if env.reports(b.guarantee, b.says) {
					t.Logf("found with seed %d, by %v", seed, env.found())
					return
				}
			}
			t.Errorf("%d schedules, and no validator of %s reports that something %s", seedsToFind, b.guarantee, b.says)
		})
	}
}

// allBugs returns the bugs of locks and those of recipes, whose schedules have the recipe.
func allBugs() []deliberate {
	all := slices.Clone(bugs)
	for _, x := range allRecipes() {
		for _, b := range x.bugs {
			all = append(all, deliberate{b.guarantee, b.what, b.says, func(made *bug) {
				b.make(made)
				further := made.plan
				made.plan = func(p *plan) {
					p.have(x, rand.New(rand.NewPCG(uint64(p.horizon), 7)))
					further(p)
				}
			}})
		}
	}
	return all
}

// insist adds faults of the kind with the name to the plan, at regular intervals.
func (p *plan) insist(name string, interval, span time.Duration) {
	i := slices.IndexFunc(faultKinds(), func(k *faultKind) bool { return k.name == name })
	if i < 0 {
		return
	}
	for at := interval / 2; at < p.horizon; at += interval {
		p.faults = append(p.faults, plannedFault{kind: faultKinds()[i], at: at, span: span, seed: uint64(at)})
	}
	p.sortFaults()
}

// reports returns whether a validator of the guarantee has reported what contains the text.
func (env *environment) reports(g guarantee, text string) bool {
	env.mu.Lock()
	defer env.mu.Unlock()
	return slices.ContainsFunc(env.violations, func(v violation) bool {
		return v.guarantee == g && strings.Contains(v.text, text)
	})
}

// TestThePageNamesTheBugs holds README.md against the deliberate bugs.
func TestThePageNamesTheBugs(t *testing.T) {
	page := must.Get(os.ReadFile("README.md"))(t)
	for _, b := range allBugs() {
		if row := fmt.Sprintf("| %s | %s |", b.what, b.guarantee); !strings.Contains(string(page), row) {
			t.Errorf("README.md lacks the row %q", row)
		}
	}
}
