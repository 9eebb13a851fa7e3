package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/epochpath"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestUnfairMutexRequests counts what an unfair mutex asks of the server.
func TestUnfairMutexRequests(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/requests/lock"
		c, proxy := onRoute(t, env)
		e := newUnfairMutex(t, c, path)
		mustRelease(t, mustLock(t, e)) // makes the epoch
		count := func(what string, want ...fault.Op) {
			t.Helper()
			if ops := operations(proxy); !slices.Equal(ops, want) {
				t.Errorf("%s: requests %v, want %v", what, ops, want)
			}
			proxy.ResetRequests()
		}
		proxy.ResetRequests()
		lease := mustTry(t, e)
		count("TryLock of a free lock", fault.Multi)
		mustRefuse(t, e)
		count("TryLock while the same client has it")
		mustRelease(t, lease)
		count("release", fault.Multi)
		lease = mustLock(t, e)
		mustRelease(t, lease)
		count("Lock and release", fault.Multi, fault.Multi)
		held := mustTry(t, newUnfairMutex(t, env.Client(t), path))
		mustRefuse(t, e)
		count("the first TryLock while somebody else has it", fault.Multi, fault.Exists)
		mustRefuse(t, e)
		count("TryLock while somebody else has it", fault.Multi)
		mustRelease(t, held)
	})
}

// TestUnfairMutexWaitersOfOneClientAskNothing has many goroutines wait for a lock
// that their own client has.
func TestUnfairMutexWaitersOfOneClientAskNothing(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const waiters = 16
		c, proxy := onRoute(t, env)
		e := newUnfairMutex(t, c, "/unfair/local")
		held := mustLock(t, e)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // the own znode's watch is read later
		defer cancel()
		proxy.ResetRequests()
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				wantErr(t, "Lock", errOf(e.Lock(ctx)), context.DeadlineExceeded)
			})
		}
		wg.Wait()
		if n := count(proxy, fault.Create, fault.Multi, fault.Exists, fault.GetChildren); n != 0 {
			t.Errorf("%d requests by those who waited, want none", n)
		}
		mustRelease(t, held)
		mustRelease(t, mustTry(t, e))
	})
}

// TestUnfairMutexReleaseIsNoStampede counts the creates of many clients that wait
// for one lock when it is released once.
func TestUnfairMutexReleaseIsNoStampede(t *testing.T) {
	t.Parallel()
	const path, waiters = "/unfair/stampede", 16
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		held := mustLock(t, newUnfairMutex(t, env.Client(t), path))
		ctx, cancel := context.WithCancel(t.Context())
		var routes []*zkenv.Route
		grants := make(chan *lock.Lease, waiters)
		var wg sync.WaitGroup
		for range waiters {
			c, route := onRoute(t, env)
			routes = append(routes, route)
			e := newUnfairMutex(t, c, path)
			wg.Go(func() {
				if lease, err := e.Lock(ctx); err == nil {
					grants <- lease
				}
			})
			zktest.Eventually(t, generous, "it waits", func() bool { return waits(route, path) })
		}
		for _, route := range routes {
			route.ResetRequests()
		}
		mustRelease(t, held)
		lease := must.Receive(t, grants, "the grant to one of them")
		creates := 0
		for _, route := range routes { // each looks once more: the winner finds it free, the others taken
			zktest.Eventually(t, generous, "it has looked", func() bool { return waits(route, path) })
		}
		env.Quiesce()
		for _, route := range routes {
			creates += route.Count(fault.Multi)
		}
		if creates > waiters/2 {
			t.Errorf("%d creates by %d waiters at one release, want one, or a few", creates, waiters)
		}
		t.Logf("%d creates by %d waiters at one release", creates, waiters)
		cancel()
		wg.Wait()
		mustRelease(t, lease)
	}, zkenv.Only("how far a pause of milliseconds spreads requests depends on a real machine's load", zkenv.Embedded))
}

// TestUnfairMutexLostLeaseTakesNothingFromOthers has an operator delete the holder's znode and
// another client lock, before and after the loss is noticed.
func TestUnfairMutexLostLeaseTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/lost"
		c := env.Client(t)
		lease := mustLock(t, newUnfairMutex(t, c, path))
		other := env.Client(t)
		waiting := lockLater(t.Context(), newUnfairMutex(t, other, path))
		must.OK(t, other.Delete(t.Context(), path))
		got := must.Receive(t, waiting, "the lock")
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		must.Receive(t, lease.Lost(), "the loss")
		wantErr(t, "lease", lease.Err(), lock.ErrNodeDeleted)
		wantErr(t, "release", lease.Release(t.Context()), lock.ErrNodeDeleted)
		zktest.Eventually(t, generous, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
		mustHold(t, other, got.Lease)
		mustRelease(t, got.Lease)
	})
}

// TestUnfairMutexBehindAForeignZnode finds a znode at its path that no session
// will ever take away.
func TestUnfairMutexBehindAForeignZnode(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/foreign"
		c := env.Client(t)
		must.Get(c.Create(t.Context(), path, []byte("theirs"), framework.WithParents()))(t)
		e := newUnfairMutex(t, c, path)
		mustRefuse(t, e)
		found, err := e.Participants(t.Context())
		if err != nil || len(found) != 1 || found[0].Session != 0 || string(found[0].Data) != "theirs" {
			t.Errorf("participants %+v, %v; want the znode that is in the way, of no session", found, err)
		}
		done := lockLater(t.Context(), e)
		must.OK(t, c.Delete(t.Context(), path))
		mustRelease(t, granted(t, done, "the lock"))
	})
}

// TestUnfairMutexReleaseAfterTheEpochChanged has an operator write to the epoch, or delete it, while
// the lock is held: the release still deletes the holder's znode.
func TestUnfairMutexReleaseAfterTheEpochChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *framework.Client, string) error{
		"written": func(t *testing.T, c *framework.Client, epoch string) error {
			_, err := c.Set(t.Context(), epoch, nil, framework.AnyVersion)
			return err
		},
		"deleted": func(t *testing.T, c *framework.Client, epoch string) error {
			return c.Delete(t.Context(), epoch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				path := "/unfair/epoch/" + name
				c := env.Client(t)
				e := newUnfairMutex(t, c, path)
				lease := mustLock(t, e)
				must.OK(t, change(t, c, epochpath.Of(path)))
				mustRelease(t, lease)
				if _, ok, err := c.Exists(t.Context(), path); ok || err != nil {
					t.Errorf("the znode after the release: %v, %v", ok, err)
				}
				mustRelease(t, mustTry(t, e))
			})
		})
	}
}

// TestUnfairMutexGuard writes under the guard: as the holder, after an operator's deletion, and
// when another client has the lock.
func TestUnfairMutexGuard(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/guard"
		c, other := env.Client(t), env.Client(t)
		createDirs(t, c, "/unfair/guarded")
		lease := mustLock(t, newUnfairMutex(t, c, path))
		write := func() error {
			set := framework.OpSet("/unfair/guarded", nil, framework.AnyVersion)
			results, err := c.Txn(t.Context(), lease.Guard(), set)
			if err == nil && len(results) != 2 {
				t.Errorf("%d results of 2 operations", len(results))
			}
			return err
		}
		refused := func(when string, want error) {
			t.Helper()
			culprit := new(framework.TxnError)
			if err := write(); !errors.Is(err, want) || !errors.As(err, &culprit) || culprit.Index != 0 {
				t.Errorf("guarded write %s: %v, want %v of operation 0", when, err, want)
			}
		}
		wantErr(t, "guarded write of the holder", write(), nil)
		must.OK(t, other.Delete(t.Context(), path))
		refused("after an operator's deletion", framework.ErrNoNode)
		next := mustLock(t, newUnfairMutex(t, other, path))
		refused("under the next holder", framework.ErrBadVersion)
		mustRelease(t, next)
	})
}

// TestUnfairMutexGuardInAMulti writes under the guards of a Multi's lease when another client has
// the lock of its only member.
func TestUnfairMutexGuardInAMulti(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/multi-guard"
		c, other := env.Client(t), env.Client(t)
		lease := mustLock(t, newMulti(t, newUnfairMutex(t, c, path)))
		if _, err := c.Txn(t.Context(), lease.Guards()...); err != nil {
			t.Errorf("guarded transaction of the holder: %v", err)
		}
		must.OK(t, other.Delete(t.Context(), path))
		next := mustLock(t, newUnfairMutex(t, other, path))
		if _, err := c.Txn(t.Context(), lease.Guards()...); !errors.Is(err, framework.ErrBadVersion) {
			t.Errorf("transaction with Guards under the next holder: %v, want ErrBadVersion", err)
		}
		if _, err := c.Txn(t.Context(), lease.Guard()); !errors.Is(err, errNoGuard) {
			t.Errorf("transaction with the Guard of the whole: %v, want ErrNoGuard", err)
		}
		mustRelease(t, next)
	})
}

// TestUnfairMutexEpochIsNoOtherLocks has the epochs of a lock be at no path that another lock can have:
// users' keys are paths, and any key may follow any other.
func TestUnfairMutexEpochIsNoOtherLocks(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		const path = "/unfair-keys/a"
		mustRelease(t, mustLock(t, newUnfairMutex(t, c, path)))
		epoch := epochpath.Of(path)
		for _, key := range []string{path + ".epoch", path + "-epoch", "/unfair-keys/epoch"} {
			other := newUnfairMutex(t, c, key, recipes.WithData([]byte("held")))
			mustRelease(t, mustTry(t, other)) // after the first lock was used
			held := mustTry(t, other)
			mustRelease(t, mustTry(t, newUnfairMutex(t, c, path))) // while the other is held
			found := must.Get(other.Participants(t.Context()))(t)
			if len(found) != 1 || string(found[0].Data) != "held" || found[0].Metadata == nil {
				t.Errorf("holder of %s after a lock of %s: %+v, want its data and metadata", key, path, found)
			}
			mustRelease(t, held)
		}
		view := must.Get(c.Namespace(strings.TrimPrefix(epoch, "/")))(t)
		for name, target := range map[string]struct {
			client *framework.Client
			path   string
		}{
			"the epoch": {c, epoch}, "below the epoch": {c, epoch + "/b"}, "in a namespace": {view, "/b"},
		} {
			for kind, construct := range map[string]func() error{
				"mutex":           func() error { _, err := lock.NewMutex(target.client, target.path); return err },
				"unfair mutex":    func() error { _, err := lock.NewUnfairMutex(target.client, target.path); return err },
				"semaphore mutex": func() error { _, err := lock.NewSemaphoreMutex(target.client, target.path); return err },
				"read/write lock": func() error { _, err := lock.NewRWMutex(target.client, target.path); return err },
			} {
				if err := construct(); err == nil || !strings.Contains(err.Error(), "is the epoch of another lock") {
					t.Errorf("new %s at %s: %v, want a refusal", kind, name, err)
				}
			}
		}
	}, oneOfEach())
}
