package lock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestReentryByAnotherValue locks by two values of one path, one of them in a namespace. They are one lock; in
// issue 75 of Netflix's Curator they waited for each other. A re-entry costs no request.
func TestReentryByAnotherValue(t *testing.T) {
	t.Parallel()
	type named interface {
		lock.Locker
		Path() string
	}
	eachKindAndEnv(t, kindsThat(withParticipants), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c, route := onRoute(t, env)
		dir, base := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/"):]
		view := must.Get(c.Namespace(strings.TrimPrefix(dir, "/")))(t)
		a, b := k.lock(t, c, path).(named), k.lock(t, view, base).(named)
		first := mustLock(t, a)
		route.ResetRequests()
		second, third := mustLock(t, b), mustTry(t, b)
		if n := route.Count(fault.Create, fault.GetChildren); n != 0 {
			t.Errorf("re-entries cost %d requests, want 0", n)
		}
		if a.Path() != path || first.Path() != path || b.Path() != base {
			t.Errorf("paths %s, %s and %s, want %s, the lease's too, and %s", a.Path(), first.Path(), b.Path(), path, base)
		}
		for _, l := range []*lock.Lease{second, first, third} {
			if l.Node() != first.Node() {
				t.Errorf("leases of the znodes %s and %s, want one", first.Node(), l.Node())
			}
			mustRelease(t, l)
		}
	}, oneOfEach())
}

// TestOwnersJoinOneAttempt has goroutines of one owner lock at the same time, behind a holder.
// There is one node for all. When the goroutine that drives the attempt withdraws, another
// continues from the same place.
func TestOwnersJoinOneAttempt(t *testing.T) {
	const path = "/reentrant/join"
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		holder := env.Client(t)
		held := mustLock(t, newMutex(t, holder, path))
		m := newMutex(t, env.Client(t), path)
		owned := asOwner(t, "joined")
		first, withdraw := context.WithCancel(owned)
		defer withdraw()
		firstDone := lockLater(first, m)
		awaitContenders(t, holder, path, 2)
		place := contenders(t, holder, path)
		var rest []<-chan result
		for range 4 {
			rest = append(rest, lockLater(owned, m))
		}
		wantErr(t, "TryLock while the owner waits", errOf(m.TryLock(owned)), lock.ErrHeld)
		env.Quiesce() // the rest have joined
		withdraw()
		wantErr(t, "the one that gave up", failed(t, firstDone, "the one that gave up"), context.Canceled)
		behind := lockLater(t.Context(), newMutex(t, holder, path))
		awaitContenders(t, holder, path, 3)
		mustRelease(t, held)
		var leases []*lock.Lease
		for _, done := range rest {
			lease := granted(t, done, "a joined grant")
			if !slices.Contains(place, strings.TrimPrefix(lease.Node(), path+"/")) {
				t.Errorf("granted on %s, want a place of %v: the attempt was not handed over", lease.Node(), place)
			}
			leases = append(leases, lease)
		}
		if n := m.Held(owned); n != 4 {
			t.Errorf("held %d times, want 4", n)
		}
		for _, lease := range leases {
			mustRelease(t, lease)
		}
		mustRelease(t, granted(t, behind, "the lock behind"))
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

// Goroutines of one owner that each lock once and unlock once leave nothing held.
func TestUnlocksOfOneOwnerAtOnce(t *testing.T) {
	t.Parallel()
	srv := virtualServer(t)
	m := newMutex(t, virtualClient(t, srv), "/interleaved/unlock")
	for i := range 300 {
		ctx := asOwner(t, "party")
		const n = 8
		for range n {
			must.Get(m.Lock(ctx))(t)
		}
		start := make(chan struct{})
		var all sync.WaitGroup
		var failed atomic.Int32
		for range n {
			all.Go(func() {
				<-start
				if err := m.Unlock(ctx); err != nil {
					failed.Add(1)
				}
			})
		}
		close(start)
		all.Wait()
		if held := m.Held(ctx); held != 0 || failed.Load() != 0 {
			t.Fatalf("round %d: %d unlocks for %d locks: %d failed, %d leases are left", i, n, n, failed.Load(), held)
		}
	}
}

// A try that takes over from another call of its owner is not refused for the node that it
// inherits.
func TestTryLock_takes_over_its_owners_attempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/interleaved/takeover"
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		m := newMutex(t, c, path)
		owner := asOwner(t, "party")
		// The directory exists, so it is listed once before the znode is created and once behind it.
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
		slow := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.HoldReply, Skip: 1})
		first, cancel := context.WithCancel(owner)
		var all sync.WaitGroup
		all.Go(func() {
			wantErr(t, "the first TryLock", errOf(m.TryLock(first)), context.Canceled)
		})
		<-slow.Hit() // the node exists, and the listing behind it is on its way
		all.Go(func() {
			lease, err := m.TryLock(owner)
			if err != nil {
				t.Errorf("the second TryLock: %v, want a lease: nobody else is there", err)
				return
			}
			mustRelease(t, lease)
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		slow.Release()
		all.Wait()
	})
}

// TestOwnerOfALockThatWasReleasedAtOnce has a function of the user's release the lease before Lock has
// recorded it.
func TestOwnerOfALockThatWasReleasedAtOnce(t *testing.T) {
	t.Parallel()
	owner := lock.NewOwner("at once")
	lock.GrantAfterEnd(owner)
	if holds := owner.Holds(); len(holds) != 0 {
		t.Errorf("the owner of a released lock holds %q", holds)
	}
}

// Each call is an owner of its own if a kind of lock is not reentrant, or made with WithoutReentry.
func TestWithoutReentry(t *testing.T) {
	t.Parallel()
	for _, k := range kindsThat(kind.exclusive) {
		var opts []lock.Option
		if k.reentrant || k.name == "semaphore mutex" {
			opts = append(opts, lock.WithoutReentry())
		}
		for _, owned := range []bool{false, true} {
			virtualSubtest(t, fmt.Sprintf("%s, with an owner %v", k.name, owned), func(t *testing.T, srv *zkserver.Server) {
				ctx := t.Context()
				if owned {
					ctx = asOwner(t, "one")
				}
				l := k.lock(t, virtualClient(t, srv), "/alone", opts...)
				first := must.Get(l.Lock(ctx))(t)
				mustBeHeld(ctx, t, l)
				second := lockLater(ctx, l)
				await(time.Second)
				mustWaitStill(t, "a second call", second)
				if u, ok := l.(interface{ Unlock(context.Context) error }); ok && k.queue {
					wantErr(t, "Unlock", u.Unlock(ctx), lock.ErrNotOwner)
				}
				mustRelease(t, first)
				next := granted(t, second, "the second lease")
				if owned && k.queue {
					if p := participantsOf(t, l); p[0].Metadata.Owner != "one" {
						t.Errorf("the znode shows %+v", p[0].Metadata)
					}
				}
				mustRelease(t, next)
			})
		}
	}
}

// TestTryLockTakesNoPlace has a TryLock of the owner come at the moment at which the driver of its attempt
// withdraws and another goroutine of the owner has not woken yet: that one keeps the place in the queue.
func TestTryLockTakesNoPlace(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c, other := virtualClient(t, srv), virtualClient(t, srv)
		for _, path := range numbered("/place", 100) {
			tryWhileThePlaceIsHandedOver(t, newMutex(t, c, path), newMutex(t, other, path))
		}
	})
}

func tryWhileThePlaceIsHandedOver(t *testing.T, m, rival *lock.Mutex) {
	t.Helper()
	held := mustLock(t, rival)
	ctx := lock.ContextWithOwner(t.Context(), lock.NewOwner("worker"))
	driving, quit := context.WithCancel(ctx)
	first := lockLater(driving, m)
	await(time.Second)
	second := lockLater(ctx, m)
	await(time.Second)
	before := participantsOf(t, m)[1].Path
	var tries sync.WaitGroup
	for range 4 {
		tries.Go(func() {
			for len(first) == 0 {
				wantErr(t, "TryLock", errOf(m.TryLock(ctx)), lock.ErrHeld)
			}
		})
	}
	quit()
	tries.Wait()
	<-first
	await(time.Second)
	if after := participantsOf(t, m); len(after) != 2 || after[1].Path != before {
		t.Fatalf("the owner's place is %v, want %s still", after[1:], before)
	}
	mustRelease(t, held)
	mustRelease(t, granted(t, second, "the goroutine that waited"))
}
