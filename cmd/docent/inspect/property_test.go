package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
)

// A recipe is how random contenders contend, and the recipe's own list of them.
type recipe struct {
	kind         inspect.Kind
	acquire      func(ctx context.Context, c *framework.Client, path string, pick *rand.Rand) (*lease.Lease, error)
	participants func(ctx context.Context, c *framework.Client, path string) ([]lease.Participant, error)
}

// recipeOf returns the recipe whose locks create makes.
func recipeOf[L interface {
	Participants(ctx context.Context) ([]lease.Participant, error)
}](
	kind inspect.Kind, create func(c *framework.Client, path string) (L, error),
	acquire func(ctx context.Context, l L, pick *rand.Rand) (*lease.Lease, error),
) recipe {
	return recipe{
		kind,
		func(ctx context.Context, c *framework.Client, path string, pick *rand.Rand) (*lease.Lease, error) {
			return acquire(ctx, orPanic(create(c, path)), pick)
		},
		func(ctx context.Context, c *framework.Client, path string) ([]lease.Participant, error) {
			return orPanic(create(c, path)).Participants(ctx)
		},
	}
}

// lockOf is recipeOf for a lock that is locked without further ado.
func lockOf[L interface {
	lock.Locker
	Participants(ctx context.Context) ([]lease.Participant, error)
}](kind inspect.Kind, create func(c *framework.Client, path string) (L, error),
) recipe {
	return recipeOf(kind, create, func(ctx context.Context, l L, _ *rand.Rand) (*lease.Lease, error) { return l.Lock(ctx) })
}

func fresh(ctx context.Context) context.Context {
	return lock.ContextWithOwner(ctx, lock.NewOwner("owner"))
}

func everyRecipe() map[string]recipe {
	return map[string]recipe{
		"Mutex": recipeOf(inspect.Mutex,
			func(c *framework.Client, path string) (*lock.Mutex, error) { return lock.NewMutex(c, path) },
			func(ctx context.Context, m *lock.Mutex, _ *rand.Rand) (*lease.Lease, error) {
				return m.Lock(fresh(ctx))
			},
		),
		"RWMutex": recipeOf(inspect.ReadWrite,
			func(c *framework.Client, path string) (*lock.RWMutex, error) { return lock.NewRWMutex(c, path) }, readOrWrite),
		"SemaphoreMutex": lockOf(inspect.Semaphore,
			func(c *framework.Client, path string) (*lock.SemaphoreMutex, error) {
				return lock.NewSemaphoreMutex(c, path)
			}),
		"Semaphore": recipeOf(inspect.Semaphore,
			func(c *framework.Client, path string) (*semaphore.Semaphore, error) { return semaphore.New(c, path, 4) },
			func(ctx context.Context, s *semaphore.Semaphore, pick *rand.Rand) (*lease.Lease, error) {
				return s.Acquire(ctx, 1+pick.IntN(2))
			},
		),
		"Latch":    election(inspect.Leader, leader.Latch),
		"Selector": election(inspect.Mutex, leader.Selector),
		"UnfairMutex": lockOf(inspect.Exclusive,
			func(c *framework.Client, path string) (*lock.UnfairMutex, error) { return lock.NewUnfairMutex(c, path) }),
	}
}

// readOrWrite acquires a side of the lock, or downgrades it.
func readOrWrite(ctx context.Context, m *lock.RWMutex, pick *rand.Rand) (*lease.Lease, error) {
	ctx = fresh(ctx)
	switch pick.IntN(4) {
	case 0, 1:
		return m.Read().Lock(ctx)
	case 2: // a downgrade
		l, err := m.Write().Lock(ctx)
		if err != nil {
			return nil, err
		}
		read, err := m.Read().Lock(ctx)
		if err != nil || pick.IntN(2) == 0 {
			return read, errors.Join(err, l.Release(context.WithoutCancel(ctx)))
		}
		return l, nil // the read side stays, until the client is closed
	}
	return m.Write().Lock(ctx)
}

func election(kind inspect.Kind, f leader.Format) recipe {
	return recipeOf(kind,
		func(c *framework.Client, path string) (*leader.Election, error) {
			return leader.New(c, path, leader.WithFormat(f))
		},
		func(ctx context.Context, e *leader.Election, _ *rand.Rand) (*lease.Lease, error) {
			return e.Campaign(ctx)
		},
	)
}

func orPanic[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestReadShowsTheParticipants lets random contenders of each recipe come, wait, hold and leave. In
// each pause Read shows exactly the recipe's own participants, and so do Scan and a Live.
func TestReadShowsTheParticipants(t *testing.T) {
	t.Parallel()
	for name, r := range everyRecipe() {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				virtual(t, func(t *testing.T, e *ensemble) { compareRandomly(t, e, r, rand.New(rand.NewPCG(seed, 1))) })
			})
		}
	}
}

// A crowd is contenders that come and go.
type crowd struct {
	mu     sync.Mutex
	leases []*lease.Lease
	wg     sync.WaitGroup
}

func compareRandomly(t *testing.T, e *ensemble, r recipe, pick *rand.Rand) {
	t.Helper()
	observer := e.client(t)
	live := follow(t, observer, "/")
	clients := randomly(t, e, r, pick, func() {
		settle()
		compare(t, observer, r, live.View())
	})
	synctest.Wait()
	for _, c := range clients {
		must.OK(t, c.Close())
	}
	if l := mustRead(t, observer, "/a/lock"); len(l.Contenders) != 0 {
		t.Errorf("nobody is left, but: %s", brief(l))
	}
}

// randomly has contenders of three clients come and go, and calls check in each pause. All have left when it returns.
func randomly(t *testing.T, e *ensemble, r recipe, pick *rand.Rand, check func()) []*framework.Client {
	t.Helper()
	clients := make([]*framework.Client, 3)
	for i := range clients {
		clients[i] = e.client(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all crowd
	for range 14 {
		for range pick.IntN(4) {
			c, own := clients[pick.IntN(len(clients))], rand.New(rand.NewPCG(pick.Uint64(), 1))
			all.wg.Go(func() { all.come(ctx, c, r, own) })
			synctest.Wait() // one after another, so that a seed repeats the same
		}
		if pick.IntN(2) == 0 {
			all.leave(t, pick)
		}
		check()
	}
	cancel()
	all.wg.Wait()
	for len(all.leases) > 0 {
		all.leave(t, pick)
	}
	return clients
}

func (all *crowd) come(ctx context.Context, c *framework.Client, r recipe, pick *rand.Rand) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if pick.IntN(3) == 0 {
		wait, cancel = context.WithTimeout(ctx, 0)
	}
	defer cancel()
	l, err := r.acquire(wait, c, "/a/lock", pick)
	if err != nil {
		return // ctx has ended
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.leases = append(all.leases, l)
}

func (all *crowd) leave(t *testing.T, pick *rand.Rand) {
	t.Helper()
	all.mu.Lock()
	if len(all.leases) == 0 {
		all.mu.Unlock()
		return
	}
	i := pick.IntN(len(all.leases))
	l := all.leases[i]
	all.leases = slices.Delete(all.leases, i, i+1)
	all.mu.Unlock()
	must.OK(t, l.Release(context.Background()))
}

// compare compares what Read and Scan show with the recipe's participants, and a Live's view with what Scan shows.
func compare(t *testing.T, c *framework.Client, r recipe, view inspect.View) {
	t.Helper()
	want := must.Get(r.participants(t.Context(), c, "/a/lock"))(t)
	l := mustRead(t, c, "/a/lock")
	if got, want := participantsOf(l), expected(l, want); !slices.Equal(got, want) {
		t.Fatalf("got  %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !l.Complete {
		t.Error("not complete")
	}
	if len(want) > 0 && l.Kind != r.kind {
		t.Errorf("kind %q, want %q", l.Kind, r.kind)
	}
	scanned := mustScan(t, c, "/", inspect.Limits{})
	found, ok := scanned.Lock("/a/lock")
	if ok != (len(want) > 0) || ok && !slices.Equal(participantsOf(found), expected(found, want)) {
		t.Errorf("Scan shows %s of %d participants", brief(found), len(want))
	}
	if len(scanned.Locks) > 1 || len(scanned.Unread) > 0 || !scanned.Complete {
		t.Errorf("Scan: %d locks, unread %v, complete %v", len(scanned.Locks), scanned.Unread, scanned.Complete)
	}
	if view.State != inspect.Current || !view.Complete {
		t.Fatalf("a Live is %v, complete %v", view.State, view.Complete)
	}
	checkBriefs(t, view.Snapshot, scanned)
	holders := mustScan(t, c, "/", inspect.Limits{HoldersOnly: true})
	if few, _ := holders.Lock("/a/lock"); brief(few) != brief(found) && len(few.Holders()) != len(found.Holders()) {
		t.Errorf("with the holders alone: %s\nwith all: %s", brief(few), brief(found))
	}
}

// expected describes the recipe's participants. Package inspect shows the two znodes of the first
// contender of a semaphore's queue as one.
func expected(l inspect.Lock, ps []lease.Participant) []string {
	turns := map[string]bool{}
	for _, c := range l.Contenders {
		turns[c.Turn] = true
	}
	var all []string
	for _, p := range ps {
		if !turns[p.Path] {
			all = append(all, summary(p.Path, p.Session, p.Sequence, p.Holder, p.Revoked, p.Metadata))
		}
	}
	return all
}

func summary(path string, session, sequence int64, holds, revoked bool, m *lease.Metadata) string {
	return fmt.Sprintf("%s %x %d %v %v %+v", path, session, sequence, holds, revoked, m)
}

// participantsOf describes the contenders.
func participantsOf(l inspect.Lock) []string {
	var all []string
	for _, c := range l.Contenders {
		all = append(all, summary(c.Znode, c.Session, c.Sequence, c.State == inspect.Holds, c.Revoked, c.Meta))
	}
	return all
}
