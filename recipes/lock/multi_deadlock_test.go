package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
)

// A ward is what one lock of a trial guards: the lock alone keeps its fields from
// a data race, which the race detector would see.
type guardedValue struct {
	path    string
	holders chan struct{} // full while a client is in
	visits  int
	fence   int64
}

func newWards(paths []string) []*guardedValue {
	wards := make([]*guardedValue, len(paths))
	for i, path := range paths {
		wards[i] = &guardedValue{path: path, holders: make(chan struct{}, 1)}
	}
	return wards
}

// enter checks that no other client is in, and that the fence has grown.
func (d *guardedValue) enter(t testing.TB, l *lock.Lease) {
	t.Helper()
	select {
	case d.holders <- struct{}{}:
	default:
		t.Errorf("%s: two holders at once", d.path)
	}
	d.visits++
	if fence := l.Fence(); fence <= d.fence {
		t.Errorf("%s: fence %d after %d: must grow", d.path, fence, d.fence)
	} else {
		d.fence = fence
	}
}

func (d *guardedValue) leave() { <-d.holders }

// visitTogether locks the wards by one Multi, in the order given.
func visitTogether(ctx context.Context, t testing.TB, c *framework.Client, wards []*guardedValue) {
	t.Helper()
	var paths []string
	for _, d := range wards {
		paths = append(paths, d.path)
	}
	lease, err := newMulti(t, newMutexes(t, c, paths...)...).Lock(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	members := lease.Members()
	for _, d := range wards {
		i := slices.IndexFunc(members, func(l *lock.Lease) bool { return l.Path() == d.path })
		d.enter(t, members[i])
	}
	for _, d := range wards {
		d.leave()
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
}

// visitNested locks the wards one within the other, in the order given.
func visitNested(ctx context.Context, t testing.TB, c *framework.Client, wards []*guardedValue) {
	t.Helper()
	if len(wards) == 0 {
		return
	}
	lease, err := newMutex(t, c, wards[0].path).Lock(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	wards[0].enter(t, lease)
	visitNested(ctx, t, c, wards[1:])
	wards[0].leave()
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
}

// TestNoDeadlockAmongMultisAndNestedLocks has goroutines of two clients lock
// random subsets of six paths, by Multis in random order and by mutexes nested in
// path order. Nothing in it times out: it ends, or the test never does.
func TestNoDeadlockAmongMultisAndNestedLocks(t *testing.T) {
	t.Parallel()
	const clients, goroutines, acquisitions = 2, 4, 2000
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		wards := newWards(numbered("/multi/trial", 6))
		ctx := context.Background()
		var wg sync.WaitGroup
		for i := range clients {
			c := env.Client(t)
			for j := range goroutines {
				random := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				wg.Go(func() {
					for range acquisitions / clients / goroutines {
						chosen := slices.Clone(wards)
						random.Shuffle(len(chosen), func(a, b int) { chosen[a], chosen[b] = chosen[b], chosen[a] })
						chosen = chosen[:1+random.IntN(len(chosen))]
						if random.IntN(3) > 0 {
							visitTogether(ctx, t, c, chosen)
							continue
						}
						slices.SortFunc(chosen, func(a, b *guardedValue) int { return slices.Index(wards, a) - slices.Index(wards, b) })
						visitNested(ctx, t, c, chosen)
					}
				})
			}
		}
		wg.Wait()
		visits := 0
		for _, d := range wards {
			visits += d.visits
		}
		if visits < acquisitions {
			t.Errorf("%d visits in %d acquisitions", visits, acquisitions)
		}
	}, zkenv.Only("hundreds of thousands of requests: once in virtual time, once for real", zkenv.EmbeddedEnsemble, zkenv.Standalone))
}

// TestNoDeadlockOfMultisWithOppositeOrders has two clients lock the same locks in
// opposite orders (redisson/redisson#467, #4050).
func TestNoDeadlockOfMultisWithOppositeOrders(t *testing.T) {
	t.Parallel()
	const rounds = 50
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		wards := newWards(numbered("/multi/opposite", 4))
		var wg sync.WaitGroup
		for range 2 {
			c, order := env.Client(t), slices.Clone(wards)
			wg.Go(func() {
				for range rounds {
					visitTogether(context.Background(), t, c, order)
				}
			})
			slices.Reverse(wards)
		}
		wg.Wait()
		for _, d := range wards {
			if d.visits != 2*rounds {
				t.Errorf("%s: %d visits, want %d", d.path, d.visits, 2*rounds)
			}
		}
	})
}

// TestMultiGetsThroughWhereOthersOnlyTry has one Multi wait among others that try and withdraw at
// once, over and over.
func TestMultiGetsThroughWhereOthersOnlyTry(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/tries", 4)
		done := make(chan struct{})
		var wg sync.WaitGroup
		var busy []*lock.Multi
		for range 2 {
			busy = append(busy, newMulti(t, newMutexes(t, env.Client(t), paths...)...))
		}
		m := newMulti(t, newMutexes(t, env.Client(t), paths...)...)
		for _, m := range busy { // virtual time does not pass while they try: a client could not connect
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					lease, err := m.TryLock(context.Background())
					if err == nil {
						err = lease.Release(context.Background())
					}
					if err != nil && !errors.Is(err, lock.ErrHeld) {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 20 {
			mustRelease(t, mustLock(t, m))
		}
		close(done)
		wg.Wait()
		awaitEach(t, env.Client(t), paths, 0)
	})
}
