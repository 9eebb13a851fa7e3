package semaphore_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
)

// permitsOf returns what takes n of a semaphore's permits, for package locktest.
func permitsOf(n, number int, opts ...semaphore.Option) locktest.NewLocker {
	return func(t testing.TB, c *framework.Client, path string) lock.Locker {
		t.Helper()
		return recipetest.Permits{Semaphore: newSemaphore(t, c, path, number, opts...), N: n}
	}
}

// TestContract checks the promises of every lock, where a contender that takes all three permits
// excludes the others. For leases of several permits it checks each request under faults.
func TestContract(t *testing.T) {
	t.Parallel()
	t.Run("Permits", func(t *testing.T) {
		t.Parallel()
		locktest.Run(t, permitsOf(1, 3), locktest.Permits(3, permitsOf(3, 3)))
	})
	t.Run("All of them", func(t *testing.T) {
		t.Parallel()
		locktest.Run(t, permitsOf(2, 2), locktest.FaultsOnly(),
			locktest.In(zkenv.Only("its other promises are those of one permit", zkenv.Embedded)))
	})
}

// TestAtMostN has clients with faults acquire different numbers of permits. An oracle outside
// ZooKeeper counts those that are neither lost nor released.
func TestAtMostN(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const number, clients, rounds = 4, 4, 6
		path, oracle := recipetest.Path(t), locktest.NewOracle(t)
		routes := make([]*zkenv.Route, clients)
		var wg sync.WaitGroup
		for i := range clients {
			routes[i] = env.Route(t)
			s := newSemaphore(t, routes[i].Client(t), path, number)
			wg.Go(func() {
				for range rounds {
					n := 1 + rand.N(number)
					l, err := s.Acquire(t.Context(), n)
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					oracle.EnterPermits(l, n, number)
					<-time.After(time.Duration(rand.N(int64(3 * time.Millisecond))))
					oracle.Leave(l)
					if err := l.Release(t.Context()); err != nil && !errors.Is(err, lease.ErrLost) {
						t.Errorf("Release: %v", err)
					}
				}
			})
		}
		routes[0].Cut()
		routes[1].Expire(t)
		wg.Wait()
		if got, want := oracle.Grants(), clients*rounds; got != want {
			t.Errorf("%d grants, want %d", got, want)
		}
		c := env.Client(t)
		recipetest.AwaitChildren(t, c, path+"/leases", 0)
		recipetest.AwaitChildren(t, c, path+"/locks", 0)
	})
}

// TestTwoThatWantAllNeverStarveEachOther: two clients acquire 2 of 2 at the same time. In 17 of 20
// rounds with Curator, each gets one permit and neither gets two.
func TestTwoThatWantAllNeverStarveEachOther(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := recipetest.Path(t)
		first, second := newSemaphore(t, env.Client(t), path, 2), newSemaphore(t, env.Client(t), path, 2)
		for range 20 {
			one, other := acquireLater(t.Context(), first, 2), acquireLater(t.Context(), second, 2)
			select {
			case got := <-one:
				must.OK(t, got.Err)
				mustRelease(t, got.Lease)
				mustRelease(t, recipetest.Granted(t, other))
			case got := <-other:
				must.OK(t, got.Err)
				mustRelease(t, got.Lease)
				mustRelease(t, recipetest.Granted(t, one))
			}
		}
	})
}

// TestSeveralPermitsAreGrantedInTurn: a contender that waits for two permits gets them before a
// contender behind it gets one, although one permit is free all the time.
func TestSeveralPermitsAreGrantedInTurn(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, c := recipetest.Path(t), env.Client(t)
		s := newSemaphore(t, c, path, 2)
		held := mustAcquire(t, s, 1)
		recipetest.AwaitChildren(t, c, path+"/locks", 0)
		several := acquireLater(t.Context(), newSemaphore(t, env.Client(t), path, 2), 2)
		recipetest.AwaitChildren(t, c, path+"/leases", 3)
		one := acquireLater(t.Context(), newSemaphore(t, env.Client(t), path, 2), 1)
		recipetest.AwaitChildren(t, c, path+"/locks", 2)
		recipetest.Fails(t, "TryAcquire of the free permit", recipetest.Err(s.TryAcquire(t.Context(), 1)), lease.ErrHeld)
		if len(several)+len(one) > 0 {
			t.Error("a contender was granted while the first one waits")
		}
		mustRelease(t, held)
		both := recipetest.Granted(t, several)
		env.Quiesce()
		if len(one) > 0 {
			t.Error("the contender behind was granted a third permit of two")
		}
		mustRelease(t, both)
		mustRelease(t, recipetest.Granted(t, one))
	})
}

// TestALeaseIsLostWithAnyOfItsZnodes: an operator deletes one of three permits.
func TestALeaseIsLostWithAnyOfItsZnodes(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, operator, path := env.Client(t), env.Client(t), recipetest.Path(t)
		s := newSemaphore(t, c, path, 3)
		for i := range 3 {
			l := mustAcquire(t, s, 3)
			found, err := s.Participants(t.Context())
			if err != nil || len(found) < 3 {
				t.Fatalf("participants %v, %v; want 3", found, err)
			}
			must.OK(t, operator.Delete(t.Context(), found[i].Path))
			must.Receive(t, l.Lost(), "the loss")
			if err := l.Err(); !errors.Is(err, lease.ErrNodeDeleted) {
				t.Errorf("lease without permit %d: %v, want ErrNodeDeleted", i, err)
			}
			recipetest.AwaitChildren(t, operator, path+"/leases", 0)
		}
	})
}

// TestGuardsOfSeveralPermits: a transaction with all guards fails when one permit is gone, and the
// single Guard refuses.
func TestGuardsOfSeveralPermits(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		l := mustAcquire(t, newSemaphore(t, c, path, 2), 2)
		if _, err := c.Txn(t.Context(), l.Guards()...); err != nil || len(l.Guards()) != 2 {
			t.Errorf("transaction with %d guards: %v, want 2 and success", len(l.Guards()), err)
		}
		if _, err := c.Txn(t.Context(), l.Guard()); !errors.Is(err, lease.ErrNoGuard) {
			t.Errorf("transaction with the Guard of two permits: %v, want ErrNoGuard", err)
		}
		mustRelease(t, l)
		if _, err := c.Txn(t.Context(), l.Guards()...); !errors.Is(err, framework.ErrNoNode) {
			t.Errorf("transaction after the release: %v, want ErrNoNode", err)
		}
	}, zkenv.Only("the server has no part in it", zkenv.Embedded, zkenv.Standalone))
}
