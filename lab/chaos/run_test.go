package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/testing/zktest"
)

// workers is how many there are. At most three at a time have a fault of their own, so that there
// are always some to succeed them.
const (
	workers       = 5
	workersFaults = 2 // of those that hold a lock; another one's connections have a fault
)

// A run is an ensemble, the workers at it, and what is done to both.
type run struct {
	seed     uint64
	ensemble *zktest.Ensemble
	network  string // how the members reach each other
	// Whether members are in network namespaces.
	namespaces bool
	store      *store
	board      *board
	slots      []*slot

	mu      sync.Mutex // guards following
	faults  []done
	revokes []revoke
	stops   []stopped
	errs    []error // what went wrong with the run itself, or with a worker
}

// A done is a fault that was done.
type done struct {
	name     string
	whom     string // a server's address or a worker's name
	from, to int64  // until the harm was ended, not until all was well
}

// A revoke is a session that was closed by the run.
type revoke struct {
	client      string
	session, at int64
}

// A stopped is a time in which a worker was stopped.
type stopped struct {
	client   string
	from, to int64
}

// newRun starts an ensemble and its workers, and waits until each kind of lock was granted.
func newRun(t testing.TB, seed uint64) *run {
	t.Helper()
	r := &run{seed: seed, board: newBoard()}
	r.ensemble, r.network, r.namespaces = newEnsemble(t, seed)
	r.store = newStore(t)
	for i := range workers {
		s := newSlot(t, r, i, r.ensemble.Servers)
		must.OK(t, s.start())
		t.Cleanup(func() {
			p := s.current()
			_ = p.cmd.Process.Kill() // unless it has ended well
			<-p.done
		})
		r.slots = append(r.slots, s)
	}
	fmt.Printf("chaos: members reach each other %s\n", r.network)
	if !await(t.Context(), startLimit, func() bool { return r.board.grantedSince(0) }) {
		t.Fatal("not every kind of lock was granted at the start")
	}
	return r
}

// session draws the session timeout of a worker, in whole milliseconds. Behind an observer master, the
// default margin covers no session that is shorter than four ticks: see docs/guarantees.md.
func (r *run) session(slot, started int) time.Duration {
	d, least := dice{rand.New(rand.NewPCG(r.seed, uint64(1000*slot+started)))}, shortestSession
	if r.namespaces && hasObserverMaster(r.seed) {
		least = 4 * tick
	}
	return d.between(least, longestSession).Truncate(time.Millisecond)
}

// A fault is one kind of harm. It returns when it is over, with the worker it was done to and the
// times. It returns no worker if it did not do what it is called.
type fault struct {
	name string
	do   func(ctx context.Context, t dice) done
}

// dice are a schedule's random numbers.
type dice struct{ *rand.Rand }

func (d dice) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.Int64N(int64(most-least)))
}

// play does faults until ctx ends, so many at a time, and returns when all are over. The seed
// shuffles their order after the first ones. Each is done once before any comes again.
func (r *run) play(ctx context.Context, stream uint64, atOnce int, least, most time.Duration, first []int, deck []fault) {
	d := dice{rand.New(rand.NewPCG(r.seed, stream))}
	room := make(chan struct{}, atOnce)
	var under sync.WaitGroup
	defer under.Wait()
	order := append(slices.Clone(first), d.Perm(len(deck))...)
	for ; ; order = d.Perm(len(deck)) {
		for _, i := range order {
			own := dice{rand.New(rand.NewPCG(d.Uint64(), stream))} // faults run side by side
			pause(ctx, d.between(least, most))
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return
			}
			under.Go(func() {
				defer func() { <-room }()
				r.do(ctx, deck[i], own)
			})
		}
	}
}

// do does a fault, and notes what was done.
func (r *run) do(ctx context.Context, f fault, d dice) {
	if did := f.do(ctx, d); did.whom != "" {
		did.name = f.name
		r.note(did)
	}
}

func (r *run) note(f done) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, f)
}

// fail records an error that no fault explains.
func (r *run) fail(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// repairLimit is how long the ensemble may take to be whole again, and the locks to be
// granted again.
const repairLimit = time.Minute

// repair undoes whatever was done to the servers. A server can be left in a state in which
// it never serves again, which is no matter of the locks: then all are killed, and
// started again on their data.
func (r *run) repair() {
	const attempts = 3
	for n := 1; ; n++ {
		ctx, cancel := context.WithTimeout(context.Background(), repairLimit)
		err := r.ensemble.Repair(ctx)
		cancel()
		if err == nil || n == attempts {
			r.fail(err)
			return
		}
		from := history.Monotonic()
		for _, s := range r.ensemble.Servers {
			r.fail(s.Kill())
		}
		r.note(done{"all servers killed and restarted, as they did not find together", "all servers", from, history.Monotonic()})
	}
}

// finish heals everything, sees every kind of lock granted again, and ends the workers.
func (r *run) finish() {
	r.repair()
	for _, s := range r.slots {
		s.heal()
	}
	at := history.Monotonic()
	if !await(context.Background(), repairLimit, func() bool { return r.board.grantedSince(at) }) {
		r.fail(fmt.Errorf("liveness: not every kind of lock was granted within %v after the last fault", repairLimit))
	}
	var all sync.WaitGroup
	for _, s := range r.slots {
		all.Go(func() { r.fail(s.current().end()) })
	}
	all.Wait()
}

// members returns the servers that vote, and those that do not.
func (r *run) members() (voters, observers []*zktest.Server) {
	return r.ensemble.Servers[:votes], r.ensemble.Servers[votes:]
}

// history returns the history of the workers, with their faults.
func (r *run) history() (*history.History, error) {
	h, err := history.Assemble(r.board.all())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.revokes {
		h.Revoke(v.client, v.session, v.at)
	}
	for _, s := range r.stops {
		h.Stop(s.client, s.from, s.to)
	}
	return h, nil
}
