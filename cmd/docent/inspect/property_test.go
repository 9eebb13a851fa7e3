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

func everyRecipe() map[string]recipe {
	var opts []lock.Option
	fresh := func(ctx context.Context) context.Context { return lock.ContextWithOwner(ctx, lock.NewOwner("owner")) }
	return map[string]recipe{
		"Mutex": {
			inspect.Mutex,
			func(ctx context.Context, c *framework.Client, path string, _ *rand.Rand) (*lease.Lease, error) {
				m, err := lock.NewMutex(c, path, opts...)
				return orPanic(m, err).Lock(fresh(ctx))
			},
			func(ctx context.Context, c *framework.Client, path string) ([]lease.Participant, error) {
				m, err := lock.NewMutex(c, path)
				return orPanic(m, err).Participants(ctx)
			},
		},
		"RWMutex": {
			inspect.ReadWrite,
			func(ctx context.Context, c *framework.Client, path string, pick *rand.Rand) (*lease.Lease, error) {
				m, err := lock.NewRWMutex(c, path)
				ctx = fresh(ctx)
				switch pick.IntN(4) {
				case 0, 1:
					return orPanic(m, err).Read().Lock(ctx)
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
				return orPanic(m, err).Write().Lock(ctx)
			},
			func(ctx context.Context, c *framework.Client, path string) ([]lease.Participant, error) {
				m, err := lock.NewRWMutex(c, path)
				return orPanic(m, err).Participants(ctx)
			},
		},
		"SemaphoreMutex": {
			inspect.Semaphore,
			func(ctx context.Context, c *framework.Client, path string, _ *rand.Rand) (*lease.Lease, error) {
				m, err := lock.NewSemaphoreMutex(c, path)
				return orPanic(m, err).Lock(ctx)
			},
			func(ctx context.Context, c *framework.Client, path string) ([]lease.Participant, error) {
				m, err := lock.NewSemaphoreMutex(c, path)
				return orPanic(m, err).Participants(ctx)
			},
		},
		"Semaphore": {
			inspect.Semaphore,
			func(ctx context.Context, c *framework.Client, path string, pick *rand.Rand) (*lease.Lease, error) {
				s, err := semaphore.New(c, path, 4)
				return orPanic(s, err).Acquire(ctx, 1+pick.IntN(2))
			},
			func(ctx context.Context, c *framework.Client, path string) ([]lease.Participant, error) {
				s, err := semaphore.New(c, path, 4)
				return orPanic(s, err).Participants(ctx)
			},
		},
		"Latch":    election(inspect.Leader, leader.Latch),
		"Selector": election(inspect.Mutex, leader.Selector),
		"UnfairMutex": {
			inspect.Exclusive,
			func(ctx context.Context, c *framework.Client, path string, _ *rand.Rand) (*lease.Lease, error) {
				m, err := lock.NewUnfairMutex(c, path)
				return orPanic(m, err).Lock(ctx)
			},
			func(ctx context.Context, c *framework.Client, path string) ([]lease.Participant, error) {
				m, err := lock.NewUnfairMutex(c, path)
				return orPanic(m, err).Participants(ctx)
			},
		},
	}
}

func election(kind inspect.Kind, f leader.Format) recipe {
	return recipe{
		kind,
		func(ctx context.Context, c *framework.Client, path string, _ *rand.Rand) (*lease.Lease, error) {
			e, err := leader.New(c, path, leader.WithFormat(f))
			return orPanic(e, err).Campaign(ctx)
		},
		func(ctx context.Context, c *framework.Client, path string) ([]lease.Participant, error) {
			e, err := leader.New(c, path, leader.WithFormat(f))
			return orPanic(e, err).Participants(ctx)
		},
	}
}

func orPanic[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestReadShowsTheParticipants lets random contenders of each recipe come, wait, hold and leave. In
// each pause Read shows exactly the recipe's own participants.
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
	clients := []*framework.Client{e.client(t), e.client(t), e.client(t)}
	observer := e.client(t)
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
		synctest.Wait()
		compare(t, observer, r)
	}
	cancel()
	all.wg.Wait()
	for len(all.leases) > 0 {
		all.leave(t, pick)
	}
	synctest.Wait()
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if l := mustRead(t, observer, "/a/lock"); len(l.Contenders) != 0 {
		t.Errorf("nobody is left, but: %s", brief(l))
	}
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
	if err := l.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// compare compares what Read and Scan show with the recipe's participants.
func compare(t *testing.T, c *framework.Client, r recipe) {
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
