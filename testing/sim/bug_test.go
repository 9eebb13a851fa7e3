package sim_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A bug is something that is broken on purpose, from outside: nothing of it is in what
// users get. The zero value breaks nothing.
type bug struct {
	locker   func(k *worker, f *framework.Client, h *handle) lock.Locker
	fence    func(*lock.Lease) int64
	guards   func(*lock.Lease) []framework.TxnOp
	dialed   func(net.Conn) net.Conn
	listener func(func(framework.StateChange)) func(framework.StateChange)
	err      func(error) error
	harm     func(*world)
	end      func()
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
	says      string // is in the validator's report
	make      func() bug
}

// seedsToFind are the schedules within which a deliberate bug has to show.
const seedsToFind = 60

// TestEveryValidatorFindsItsBug breaks something for each validator: a check that
// can't fail is no check.
func TestEveryValidatorFindsItsBug(t *testing.T) {
	for _, g := range guarantees() {
		if !slices.ContainsFunc(bugs, func(b deliberate) bool { return b.guarantee == g }) {
			t.Errorf("there is no bug for the validator of %s", g)
		}
	}
	for _, b := range bugs {
		t.Run(string(b.guarantee)+": "+b.what, func(t *testing.T) {
			for seed := uint64(1); seed <= seedsToFind; seed++ {
				w := simulate(t, newWorld(newPlan(seed), b.make()))
				if w.reports(b.guarantee, b.says) {
					t.Logf("found with seed %d, by %v", seed, w.found())
					return
				}
			}
			t.Errorf("%d schedules, and no validator of %s reports that something %s", seedsToFind, b.guarantee, b.says)
		})
	}
}

// reports returns whether a validator of the guarantee has reported what contains the text.
func (w *world) reports(g guarantee, text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.violations, func(v violation) bool {
		return v.guarantee == g && strings.Contains(v.text, text)
	})
}
