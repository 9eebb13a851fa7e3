package lock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

func TestNewMultiNamesEveryFault(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		view, err := c.Namespace("view")
		if err != nil {
			t.Fatal(err)
		}
		other := nameless{newMutex(t, c, "/d")}
		inner := newMulti(t, newMutex(t, c, "/e"), newMutex(t, c, "/f"))
		_, err = lock.NewMulti(
			newMutex(t, c, "/view/a"), nil, newMutex(t, c, "/b"), (*lock.Mutex)(nil),
			newMutex(t, view, "/a"), inner, newMutex(t, c, "/f"), other, other,
			newReadWrite(t, c, "/b").Read(), newReadWrite(t, c, "/b").Write(), newReadWrite(t, c, "/b").Read(),
		)
		want := []string{
			"lock: new multi: lock 1: must not be nil",
			"lock 3: must not be nil",
			"lock 4 (/view/a): must not be there twice, it is lock 0 too",
			"lock 6 (/f): must not be there twice, it is lock 5 too",
			"lock 8 (lock_test.nameless): must not be there twice, it is lock 7 too",
			"lock 9 (read side of /b): another kind of lock is on the path: both would be granted, so give each kind a path of its own: lock 2",
			"lock 10 (write side of /b): another kind of lock is on the path: both would be granted, so give each kind a path of its own: lock 2",
			"lock 11 (read side of /b): must not be there twice, it is lock 9 too",
		}
		if err == nil || err.Error() != strings.Join(want, "\n") || !errors.Is(err, lock.ErrMixed) {
			t.Errorf("error:\n%v\nwant:\n%s", err, strings.Join(want, "\n"))
		}
		if _, err := lock.NewMulti(); err == nil || err.Error() != "lock: new multi: locks: must be at least one" {
			t.Errorf("without locks: %v", err)
		}
		// A Multi of a Local and its mutex would wait for itself.
		m := newMutex(t, c, "/view/b")
		for _, twin := range []lock.Locker{m, newMutex(t, view, "/b"), newLocal(t, newMutex(t, view, "/b"), 3)} {
			if _, err := lock.NewMulti(newLocal(t, m, 3), twin); err == nil {
				t.Errorf("no fault of a Local and a %T of one path", twin)
			}
		}
		// One path in two ensembles, for all that can be known, is two locks.
		newMulti(t, newMutex(t, c, "/a"), newMutex(t, env.Client(t), "/a"))
	}, zkenv.Only("nothing is sent", zkenv.Embedded))
}

func TestMultiOrdersItsMembersByPath(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		view := must.Get(c.Namespace("b"))(t)
		rw := newReadWrite(t, c, "/c")
		m := newMulti(t, rw.Read(), newMutex(t, c, "/d"), newMulti(t, newMutex(t, c, "/c0"), newMutex(t, c, "/a")),
			&foreign{path: "/b/1"}, newMutex(t, view, "/2"), rw.Write())
		want := []string{"/a", "/b/1", "/2", "write side of /c", "read side of /c", "/c0", "/d"}
		if got := m.Members(); !slices.Equal(got, want) {
			t.Errorf("members %q, want %q", got, want)
		}
		if want := strings.Join(want, ", "); m.Path() != want {
			t.Errorf("path %q, want %q", m.Path(), want)
		}
	}, zkenv.Only("nothing is sent", zkenv.Embedded))
}

func TestMultiIsAllOrNone(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/none", 4)
		holder := env.Client(t)
		c, route := onRoute(t, env)
		m := newMulti(t, newMutexes(t, c, paths...)...)
		keepDirectories(t, holder, paths)
		held := mustLock(t, newMutex(t, holder, paths[2]))
		route.ResetRequests()
		lease, err := m.TryLock(t.Context())
		if lease != nil || !errors.Is(err, lock.ErrHeld) || err.Error() != "lock: try lock /multi/none/02: held by another owner" {
			t.Errorf("TryLock: %v, %v; want no lease and ErrHeld with the member's path", lease, err)
		}
		if got := count(route, "/multi", fault.Multi); got != 2 {
			t.Errorf("%d transactions, want 2", got)
		}
		for i, path := range paths {
			want := 1 // what keeps the directory
			if i == 2 {
				want++
			}
			if names := contenders(t, holder, path); len(names) != want {
				t.Errorf("%v in %s after a refused attempt, want %d", names, path, want)
			}
		}
		mustRelease(t, held)
		lease, err = m.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := lease.Path(); got != strings.Join(paths, ", ") {
			t.Errorf("path %q", got)
		}
		for _, path := range paths {
			wantErr(t, fmt.Sprintf("TryLock of %s", path), errOf(newMutex(t, holder, path).TryLock(t.Context())), lock.ErrHeld)
		}
		mustRelease(t, lease)
		awaitEach(t, holder, paths, 1)
	})
}

func TestMulti_waits_at_one_member(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/wait", 5)
		holder, c := env.Client(t), env.Client(t)
		first := mustLock(t, newMutex(t, holder, paths[1]))
		second := mustLock(t, newMutex(t, holder, paths[3]))
		done := lockLater(t.Context(), newMulti(t, newMutexes(t, c, paths...)...))
		awaitEach(t, holder, paths, 1, 2, 0, 1, 0)
		mustWait(t, "the multi", done)
		awaitEach(t, holder, paths, 1, 2, 0, 1, 0)
		mustRelease(t, first)
		awaitEach(t, holder, paths, 1, 1, 1, 2, 0)
		mustRelease(t, second)
		lease := granted(t, done, "the grant of all")
		awaitEach(t, holder, paths, 1)
		mustRelease(t, lease)
		awaitEach(t, holder, paths, 0)
	})
}

// TestMultiOfManyTakesSeveralTransactions, by the number of its members or by their data. How many of a hundred
// listings one request has, 64 at the most, is by what the connection has carried so far, and how fast: in virtual
// time that is always the same, and on a server as fast as its machine is then.
func TestMultiOfManyTakesSeveralTransactions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		members, data, writes, leastLists, mostLists int
	}{
		"members": {members: 250, writes: 3, leastLists: 5, mostLists: 8},
		"data":    {members: 5, data: 300 << 10, writes: 3, leastLists: 1, mostLists: 5},
	} {
		t.Run(name, func(t *testing.T) {
			inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
				c, route := onRoute(t, env)
				paths := numbered("/multi/"+name, tt.members)
				var locks []lock.Locker
				for _, path := range paths {
					locks = append(locks, newMutex(t, c, path, recipes.WithData(make([]byte, tt.data)), recipes.WithoutMetadata()))
				}
				keepDirectories(t, c, paths)
				m := newMulti(t, locks...)
				route.ResetRequests()
				lease := mustLock(t, m)
				most := tt.mostLists
				if !env.Kind().Virtual() {
					most = max(most, len(paths)/10)
				}
				writes, lists := count(route, "/multi", fault.Multi, fault.Create), count(route, "/multi", fault.MultiRead, fault.GetChildren)
				if writes != tt.writes || lists < tt.leastLists || lists > most {
					t.Errorf("%d writes and %d requests for the listings, want %d, and %d to %d", writes, lists, tt.writes, tt.leastLists, most)
				}
				before := count(route, "/multi", fault.Multi)
				mustRelease(t, lease)
				if n := count(route, "/multi", fault.Multi) - before; n != 1 {
					t.Errorf("%d transactions of the release, want 1", n)
				}
				awaitEach(t, c, paths, 1)
			}, zkenv.Only("numbers are the same everywhere", zkenv.Embedded, zkenv.Standalone))
		})
	}
}

func TestMultiReentersWhatItsOwnerHas(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
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
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
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
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		ctx := asOwner(t, "reader")
		rw := newReadWrite(t, c, "/multi/upgrade/b")
		m := newMulti(t, newMutex(t, c, "/multi/upgrade/a"), rw.Write(), newMutex(t, c, "/multi/upgrade/c"))
		reading := mustLockAs(ctx, t, rw.Read())
		wantErr(t, "Lock", errOf(m.Lock(ctx)), lock.ErrUpgrade)
		awaitEach(t, c, []string{"/multi/upgrade/a", "/multi/upgrade/b", "/multi/upgrade/c"}, 0, 1, 0)
		mustRelease(t, reading)
	})
}

func TestMultiFencesAndGuards(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
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
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
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
