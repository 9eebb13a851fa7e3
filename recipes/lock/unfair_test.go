package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
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
				if _, err := e.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Lock: %v, want an error that matches DeadlineExceeded", err)
				}
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

// TestUnfairMutexRelease_after_a_lost_reply loses the reply to the deletion and keeps the
// holder away until another client has the lock.
func TestUnfairMutexRelease_after_a_lost_reply(t *testing.T) {
	t.Parallel()
	for name, patience := range map[string]time.Duration{"waited-for": generous, "in-the-background": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				path := "/unfair/successor/" + name
				c, route := onRoute(t, env)
				lease := mustLock(t, newUnfairMutex(t, c, path))
				lost := route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldReply})
				released := make(chan error, 1)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					released <- lease.Release(ctx)
				}()
				must.Receive(t, lost.Hit(), "the deletion")
				route.Refuse()
				route.Cut()
				successor := env.Client(t)
				next := mustLock(t, newUnfairMutex(t, successor, path))
				var err error
				if patience < generous {
					err = must.Receive(t, released, "the release")
					route.Heal()
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("release: %v, want an error that matches DeadlineExceeded", err)
					}
				} else {
					route.Heal()
					if err = must.Receive(t, released, "the release"); err != nil {
						t.Errorf("release: %v, want nil: the znode is gone", err)
					}
				}
				zktest.Eventually(t, generous, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
				mustHold(t, successor, next)
				mustRelease(t, next)
			})
		})
	}
}

// TestUnfairMutexCleanUp_with_another_holder withdraws with the create on its way, before which
// another client acquires the lock.
func TestUnfairMutexCleanUp_with_another_holder(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/clean-up"
		c, proxy := onRoute(t, env)
		stuck := proxy.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldRequest})
		ctx, cancel := context.WithCancel(t.Context())
		done := lockLater(ctx, newUnfairMutex(t, c, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same"))))
		must.Receive(t, stuck.Hit(), "the create")
		cancel()
		if got := must.Receive(t, done, "the end of Lock"); !errors.Is(got.err, context.Canceled) {
			t.Fatalf("Lock: %v, %v; want Canceled", got.lease, got.err)
		}
		other := env.Client(t)
		lease := mustTry(t, newUnfairMutex(t, other, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same"))))
		stuck.Release()
		zktest.Eventually(t, generous, "the clean-up is done", func() bool { return c.PendingDeletes() == 0 })
		mustHold(t, other, lease)
		mustRelease(t, lease)
	})
}

// TestUnfairMutexCleanUp_before_the_next_attempt withdraws with the create on its way, and
// has the same client lock again with the same data. The clean-up must not take the second's znode
// for the first's, nor the second the first's for its own.
func TestUnfairMutexCleanUp_before_the_next_attempt(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.HoldRequest, fault.HoldReply, fault.DropReply, fault.CutBefore} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				path := "/unfair/next/" + action.String()
				c, route := onRoute(t, env)
				createDirs(t, c, "/unfair/next")
				e := newUnfairMutex(t, c, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same")))
				stuck := route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: action})
				ctx, cancel := context.WithCancel(t.Context())
				first := lockLater(ctx, e)
				must.Receive(t, stuck.Hit(), "the create")
				cancel()
				if got := must.Receive(t, first, "the end of the first"); !errors.Is(got.err, context.Canceled) {
					t.Fatalf("first Lock: %v, %v; want Canceled", got.lease, got.err)
				}
				second := lockLater(t.Context(), e)
				stuck.Release()
				got := must.Receive(t, second, "the lock")
				if got.err != nil {
					t.Fatal(got.err)
				}
				zktest.Eventually(t, generous, "the clean-up is done", func() bool { return c.PendingDeletes() == 0 })
				mustHold(t, c, got.lease)
				mustRelease(t, got.lease)
			})
		})
	}
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
		if got.err != nil {
			t.Fatal(got.err)
		}
		must.Receive(t, lease.Lost(), "the loss")
		if err := lease.Err(); !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("lease: %v, want ErrNodeDeleted", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("release: %v, want ErrNodeDeleted", err)
		}
		zktest.Eventually(t, generous, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
		mustHold(t, other, got.lease)
		mustRelease(t, got.lease)
	})
}

// TestUnfairMutexCreate_after_another_holder loses the connection before the create. Another client has
// the lock before the create is tried again.
func TestUnfairMutexCreate_after_another_holder(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/doubt"
		c, proxy := onRoute(t, env)
		other := env.Client(t)
		same := []lock.Option{recipes.WithoutMetadata(), recipes.WithData([]byte("same"))}
		cut := proxy.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.CutBefore})
		hang := proxy.Rules().Add(fault.Rule{Op: fault.Sync, Path: "/unfair", Action: fault.HoldRequest})
		tried := make(chan error, 1)
		e := newUnfairMutex(t, c, path, same...)
		go func() {
			_, err := e.TryLock(t.Context())
			tried <- err
		}()
		must.Receive(t, cut.Hit(), "the create")
		must.Receive(t, hang.Hit(), "the search for its znode")
		lease := mustTry(t, newUnfairMutex(t, other, path, same...))
		hang.Release()
		if err := must.Receive(t, tried, "TryLock"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("TryLock: %v, want ErrHeld", err)
		}
		mustHold(t, other, lease)
		mustRelease(t, lease)
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
