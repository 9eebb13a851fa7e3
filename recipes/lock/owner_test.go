package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

func TestReentrancy(t *testing.T) {
	t.Parallel()
	const path = "/reentrant/mutex"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, route := onRoute(t, env)
		other := newMutex(t, env.Client(t), path)
		owners := map[string]context.Context{
			"a goroutine":       t.Context(),
			"an explicit owner": lock.ContextWithOwner(t.Context(), lock.NewOwner("request 17")),
		}
		for name, ctx := range owners {
			// Two values of one path are one lock.
			a, b := newMutex(t, c, path), newMutex(t, c, path)
			if n := a.Held(ctx); n != 0 {
				t.Errorf("%s: held %d times before, want 0", name, n)
			}
			first, err := a.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			route.ResetRequests()
			second, err := b.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			third, err := a.TryLock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if n := route.Count(fault.Create, fault.GetChildren); n != 0 {
				t.Errorf("%s: re-entries cost %d requests, want 0", name, n)
			}
			if n := b.Held(ctx); n != 3 {
				t.Errorf("%s: held %d times, want 3", name, n)
			}
			if first.Node() != second.Node() || second.Node() != third.Node() {
				t.Errorf("%s: leases of different nodes", name)
			}
			for i, l := range []*lock.Lease{second, first, third} {
				if _, err := other.TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("%s: other client after %d releases of 3: %v, want ErrHeld", name, i, err)
				}
				mustRelease(t, l)
				if err := l.Release(ctx); !errors.Is(err, lock.ErrReleased) {
					t.Errorf("%s: second release: %v, want ErrReleased", name, err)
				}
			}
			lease, err := other.TryLock(ctx)
			if err != nil {
				t.Fatalf("%s: other client after all releases: %v", name, err)
			}
			mustRelease(t, lease)
		}
	})
}

// TestGoroutinesOfOneClientExcludeEachOther is the bug of the Go port of
// Curator, in which any goroutine re-entered: a context never carries a
// goroutine's ownership, the lease's own context included.
func TestGoroutinesOfOneClientExcludeEachOther(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		m := newMutex(t, env.Client(t), "/reentrant/goroutines")
		err := lock.Do(t.Context(), m, func(ctx context.Context, _ *lock.Lease) error {
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := m.TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("TryLock by a goroutine that was started under the lock: %v, want ErrHeld", err)
				}
				if n := m.Held(ctx); n != 0 {
					t.Errorf("it holds %d, want 0", n)
				}
				if err := m.Unlock(ctx); !errors.Is(err, lock.ErrNotOwner) {
					t.Errorf("Unlock by it: %v, want ErrNotOwner", err)
				}
			})
			wg.Wait()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestExplicitOwnerTravels(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		m := newMutex(t, env.Client(t), "/reentrant/owner")
		ctx := lock.ContextWithOwner(t.Context(), lock.NewOwner("workers"))
		if o, ok := lock.OwnerFromContext(ctx); !ok || o.String() != "workers" {
			t.Errorf("owner %v, %v; want workers", o, ok)
		}
		lease := must.Get(m.Lock(ctx))(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			again, err := m.Lock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			if n := m.Held(ctx); n != 2 {
				t.Errorf("held %d times, want 2", n)
			}
			if err := m.Unlock(ctx); err != nil {
				t.Error(err)
			}
			if err := again.Err(); !errors.Is(err, lock.ErrReleased) {
				t.Errorf("unlocked lease: %v, want ErrReleased", err)
			}
		})
		wg.Wait()
		same := lock.ContextWithOwner(t.Context(), lock.NewOwner("workers"))
		if _, err := m.TryLock(same); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("another owner of the same name: %v, want ErrHeld", err)
		}
		mustRelease(t, lease)
	})
}

// TestOwnersJoinOneAttempt has goroutines of one owner lock at the same time, behind a holder.
// There is one node for all. When the goroutine that drives the attempt withdraws, another
// continues from the same place.
func TestOwnersJoinOneAttempt(t *testing.T) {
	t.Parallel()
	const path = "/reentrant/join"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		holder := env.Client(t)
		held := mustLock(t, newMutex(t, holder, path))
		m := newMutex(t, env.Client(t), path)
		owned := lock.ContextWithOwner(t.Context(), lock.NewOwner("joined"))
		first, giveUp := context.WithCancel(owned)
		defer giveUp()
		firstDone := lockLater(first, m)
		awaitContenders(t, holder, path, 2)
		place := contenders(t, holder, path)
		var rest []<-chan result
		for range 4 {
			rest = append(rest, lockLater(owned, m))
		}
		if _, err := m.TryLock(owned); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("TryLock while the owner waits: %v, want ErrHeld", err)
		}
		env.Quiesce() // the rest have joined
		giveUp()
		if got := must.Receive(t, firstDone, "the one that gave up"); !errors.Is(got.err, context.Canceled) {
			t.Errorf("the one that gave up: %v, want Canceled", got.err)
		}
		behind := lockLater(t.Context(), newMutex(t, holder, path))
		awaitContenders(t, holder, path, 3)
		mustRelease(t, held)
		for _, done := range rest {
			got := must.Receive(t, done, "a joined grant")
			if got.err != nil {
				t.Fatal(got.err)
			}
			defer func() {
				if err := got.lease.Release(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}()
			found := false
			for _, name := range place {
				found = found || path+"/"+name == got.lease.Node()
			}
			if !found {
				t.Errorf("granted on %s, want a place of %v: the attempt was not handed over", got.lease.Node(), place)
			}
		}
		if n := m.Held(owned); n != 4 {
			t.Errorf("held %d times, want 4", n)
		}
		t.Cleanup(func() {
			if got := must.Receive(t, behind, "the lock behind"); got.err == nil {
				_ = got.lease.Release(context.Background())
			}
		})
	})
}

func TestAllJoinersGiveUp(t *testing.T) {
	t.Parallel()
	const path = "/reentrant/give-up"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		holder := env.Client(t)
		held := mustLock(t, newMutex(t, holder, path))
		m := newMutex(t, env.Client(t), path)
		ctx, cancel := context.WithTimeout(lock.ContextWithOwner(t.Context(), lock.NewOwner("all")), 300*time.Millisecond)
		defer cancel()
		var done []<-chan result
		for range 4 {
			done = append(done, lockLater(ctx, m))
		}
		for _, d := range done {
			if got := must.Receive(t, d, "the timeout"); !errors.Is(got.err, context.DeadlineExceeded) {
				t.Errorf("%v, want DeadlineExceeded", got.err)
			}
		}
		awaitContenders(t, holder, path, 1)
		mustRelease(t, held)
	})
}

func TestUnlock(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		m := newMutex(t, env.Client(t), "/reentrant/unlock")
		if err := m.Unlock(t.Context()); !errors.Is(err, lock.ErrNotOwner) {
			t.Errorf("Unlock without a lease: %v, want ErrNotOwner", err)
		}
		mustLock(t, m)
		mustLock(t, m)
		for want := 1; want >= 0; want-- {
			must.OK(t, m.Unlock(t.Context()))
			if n := m.Held(t.Context()); n != want {
				t.Errorf("held %d times, want %d", n, want)
			}
		}
		if err := m.Unlock(t.Context()); !errors.Is(err, lock.ErrNotOwner) {
			t.Errorf("one Unlock too many: %v, want ErrNotOwner", err)
		}
	})
}

func TestZeroOwnerPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("ContextWithOwner took the zero Owner")
		}
	}()
	lock.ContextWithOwner(t.Context(), lock.Owner{})
}
