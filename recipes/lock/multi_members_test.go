package lock_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
)

func TestMultiReentersWhatItsOwnerHas(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/reenter", 3)
		c := env.Client(t)
		ctx := asOwner(t, "party")
		middle := newMutex(t, c, paths[1])
		m := newMulti(t, newMutexes(t, c, paths...)...)
		outer := mustLockAs(ctx, t, middle)
		one := mustLockAs(ctx, t, m)
		two := mustLockAs(ctx, t, m)
		awaitEach(t, c, paths, 1)
		if got := middle.Held(ctx); got != 3 {
			t.Errorf("lock count of the member: %d, want 3", got)
		}
		mustBeHeld(asOwner(t, "stranger"), t, m)
		mustRelease(t, two)
		if err := one.Err(); err != nil || middle.Held(ctx) != 2 {
			t.Errorf("lease %v and lock count %d after a release; want nil and 2", err, middle.Held(ctx))
		}
		mustRelease(t, one)
		awaitEach(t, c, paths, 0, 1, 0)
		mustRelease(t, outer)
		awaitEach(t, c, paths, 0)
	})
}

func TestMultiOfEveryKindOfLock(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		one, two := env.Client(t), env.Client(t)
		view := must.Get(one.Namespace("kinds"))(t)
		semaphore := must.Get(lock.NewSemaphoreMutex(one, "/kinds/semaphore"))(t)
		exclusive := must.Get(lock.NewUnfairMutex(two, "/kinds/exclusive"))(t)
		both := newReadWrite(t, one, "/kinds/both")
		m := newMulti(t, exclusive, both.Read(), newReadWrite(t, two, "/kinds/read").Read(), semaphore,
			newMutex(t, view, "/view"), newMutex(t, two, "/kinds/two"), both.Write(), newMutex(t, one, "/kinds/one"),
			nameless{newMutex(t, one, "/kinds/foreign")})
		for range 3 {
			lease := mustLock(t, m)
			if got := len(lease.Members()); got != 9 {
				t.Fatalf("%d leases of members, want 9", got)
			}
			mustBeHeld(asOwner(t, "stranger"), t, m)
			mustRelease(t, lease)
		}
		lease := must.Get(m.TryLock(t.Context()))(t)
		mustRelease(t, lease)
		for _, path := range []string{"/both", "/read", "/semaphore/locks", "/semaphore/leases", "/view", "/two", "/one", "/foreign"} {
			awaitContenders(t, one, "/kinds"+path, 0)
		}
		if _, ok, err := two.Exists(t.Context(), "/kinds/exclusive"); ok || err != nil {
			t.Errorf("the exclusive lock's znode: %v, %v", ok, err)
		}
	})
}

func TestMultiRefusesAnUpgradeAndKeepsNothing(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		ctx := asOwner(t, "reader")
		rw := newReadWrite(t, c, "/multi/upgrade/b")
		m := newMulti(t, newMutex(t, c, "/multi/upgrade/a"), rw.Write(), newMutex(t, c, "/multi/upgrade/c"))
		reading := mustLockAs(ctx, t, rw.Read())
		if lease, err := m.Lock(ctx); lease != nil || !errors.Is(err, lock.ErrUpgrade) {
			t.Errorf("Lock: %v, %v; want no lease and ErrUpgrade", lease, err)
		}
		awaitEach(t, c, []string{"/multi/upgrade/a", "/multi/upgrade/b", "/multi/upgrade/c"}, 0, 1, 0)
		mustRelease(t, reading)
	})
}

func TestMultiFencesAndGuards(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/fence", 3)
		c := env.Client(t)
		m := newMulti(t, newMutexes(t, c, paths...)...)
		var last int64
		for range 3 {
			lease := mustLock(t, m)
			if lease.Fence() != 0 || lease.Node() != "" {
				t.Errorf("fence %d and node %q of a multi as a whole", lease.Fence(), lease.Node())
			}
			fence := lease.Members()[0].Fence()
			if fence <= last {
				t.Errorf("fence %d after %d: must grow", fence, last)
			}
			last = fence
			for _, member := range lease.Members() {
				st, ok, err := c.Exists(t.Context(), member.Node())
				if got := member.Fence(); err != nil || !ok || got != fence || got != st.Czxid {
					t.Errorf("%s: fence %d of a znode with czxid %d (%v, %v), all in one transaction: %d",
						member.Path(), got, st.Czxid, ok, err, fence)
				}
			}
			mustRelease(t, lease)
		}
		lease := mustLock(t, m)
		guards := lease.Guards()
		if _, err := c.Txn(t.Context(), guards...); err != nil || len(guards) != 3 {
			t.Errorf("%d guards: %v, want 3 and nil", len(guards), err)
		}
		deleteNode(t, c, lease.Members()[2].Node())
		if _, err := c.Txn(t.Context(), guards...); !errors.Is(err, framework.ErrNoNode) {
			t.Errorf("guards of a lease with a znode deleted: %v, want ErrNoNode", err)
		}
		must.Receive(t, lease.Lost(), "the loss")
		_ = lease.Release(t.Context())
		alone := mustLock(t, newMutex(t, c, paths[0]))
		if got := len(alone.Guards()); got != 1 || alone.Members() != nil {
			t.Errorf("a mutex's lease: %d guards, members %v; want one and nil", got, alone.Members())
		}
		mustRelease(t, alone)
	})
}

func TestGoroutinesOfOneOwnerShareAMulti(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/party", 4)
		c := env.Client(t)
		ctx := asOwner(t, "party")
		m := newMulti(t, newMutexes(t, c, paths...)...)
		reversed := newMutexes(t, c, paths...)
		slices.Reverse(reversed)
		other := newMulti(t, reversed[1:]...)
		blocked := mustLock(t, newMutex(t, c, paths[0]))
		// The first waits for path 0, the second takes over what it leaves.
		first := lockLater(ctx, m)
		awaitEach(t, c, paths, 2, 0)
		alone := granted(t, lockLater(ctx, newMutex(t, c, paths[3])), "a single member")
		mustWait(t, "the multi", first)
		second := lockLater(ctx, other)
		mustRelease(t, blocked)
		for _, l := range []*lock.Lease{granted(t, first, "all"), granted(t, second, "the first three"), alone} {
			mustRelease(t, l)
		}
		awaitEach(t, c, paths, 0)
	})
}
