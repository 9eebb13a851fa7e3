package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
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
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
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

// TestMultiFencesAndGuards: a Multi as a whole has neither a znode nor a fence, and a guard for each of its members'
// znodes, which one transaction made.
func TestMultiFencesAndGuards(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/fence", 3)
		c := env.Client(t)
		lease := mustLock(t, newMulti(t, newMutexes(t, c, paths...)...))
		if lease.Fence() != 0 || lease.Node() != "" || len(lease.Guards()) != 3 {
			t.Errorf("fence %d, node %q and %d guards of a multi as a whole", lease.Fence(), lease.Node(), len(lease.Guards()))
		}
		wantErr(t, "transaction with the one Guard", recipetest.Err(c.Txn(t.Context(), lease.Guard())), errNoGuard)
		mustHold(t, c, lease) // each member has the fence of its znode
		for _, member := range lease.Members() {
			if got, want := member.Fence(), lease.Members()[0].Fence(); got != want {
				t.Errorf("%s: fence %d, want %d, as all in one transaction", member.Path(), got, want)
			}
		}
		mustRelease(t, lease)
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

// TestMultiOfWhichOneIsLostIsLost has an operator delete a member's znode. The release names the one, whether the loss
// was noticed before or the release meets a znode that was deleted a moment ago: one transaction of all can't succeed
// then. The others go (redisson/redisson#5484, #4031).
func TestMultiOfWhichOneIsLostIsLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		action  fault.Action // what a transaction of the release meets
		met     int          // by how many
		early   bool         // another member is released first
		noticed bool
	}{
		"noticed":         {action: fault.Pass, noticed: true},
		"a moment ago":    {action: fault.Pass, met: 1, early: true},
		"outcome unknown": {action: fault.CutBefore, met: 1},
	} {
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
			paths := numbered(anyPath("/multi"), 4)
			c, route := onRoute(t, env)
			operator := env.Client(t)
			m := newMulti(t, newMutexes(t, c, paths...)...)
			lease := mustLock(t, m)
			ctx, cancel := lease.Context(t.Context())
			defer cancel()
			if tt.early {
				mustRelease(t, lease.Members()[0])
			}
			if !tt.noticed {
				defer route.Rules().Add(fault.Rule{Op: fault.Event, Action: fault.DropEvent, Times: fault.Forever}).Release()
			}
			met := route.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/multi/**", Action: tt.action})
			deleteNode(t, operator, lease.Members()[2].Node())
			errs := map[string]error{}
			if tt.noticed {
				must.Receive(t, lease.Lost(), "the loss")
				must.Receive(t, ctx.Done(), "the end of the lease's context")
				errs["Err"], errs["cause"] = lease.Err(), context.Cause(ctx)
			}
			errs["Release"] = lease.Release(t.Context())
			for what, err := range errs {
				var lost *lock.LostError
				if tt.noticed {
					if !errors.As(err, &lost) || lost.Path != m.Path() {
						t.Fatalf("%s: %v, want a LostError of all", what, err)
					}
					err = lost.Cause
				}
				if !errors.As(err, &lost) || lost.Path != paths[2] || !errors.Is(err, lock.ErrNodeDeleted) ||
					strings.Count(err.Error(), "lost "+paths[2]) != 1 {
					t.Errorf("%s: %v, want the LostError of %s once", what, err, paths[2])
				}
			}
			if met.Hits() != tt.met {
				t.Errorf("%d transactions met %v, want %d", met.Hits(), tt.action, tt.met)
			}
			wantErr(t, "second release", lease.Release(t.Context()), lock.ErrReleased)
			awaitEach(t, operator, paths, 0)
			mustRelease(t, mustLock(t, newMulti(t, newMutexes(t, operator, paths...)...)))
		})
	}
}

func TestMulti_restarts_when_a_member_is_deleted(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/anew", 4)
		holder := env.Client(t)
		c, route := onRoute(t, env)
		before := route.Count(fault.GetData)
		held := mustLock(t, newMutex(t, holder, paths[2]))
		done := lockLater(t.Context(), newMulti(t, newMutexes(t, c, paths...)...))
		awaitEach(t, holder, paths, 1, 1, 2, 0)
		zktest.Eventually(t, generous, "watches on its own three znodes and on the one ahead", func() bool {
			return route.Count(fault.GetData) == before+4
		})
		deleteNode(t, holder, zkpath.Join(paths[0], contenders(t, holder, paths[0])[0]))
		zktest.Eventually(t, generous, "the look for what fired", func() bool { return route.Count(fault.GetData) == before+5 })
		env.Quiesce()
		mustRelease(t, held)
		lease := granted(t, done, "the grant of all")
		awaitEach(t, holder, paths, 1)
		mustRelease(t, lease)
	})
}

// An error of one member of a Multi names that member.
func TestAMultisErrorNamesTheMember(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		other, c := virtualClient(t, srv), virtualClient(t, srv)
		held := mustLock(t, newMutex(t, other, "/refusal/b"))
		m := newMulti(t, newUnfairMutex(t, c, "/refusal/a"), newMutex(t, c, "/refusal/b"), newUnfairMutex(t, c, "/refusal/c"))
		_, err := m.TryLock(t.Context())
		if want := "lock: try lock /refusal/b: held by another owner"; !errors.Is(err, lock.ErrHeld) || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
		mustRelease(t, held)
	})
}

// A Multi releases its members in reverse order, even if the last one fails. Neighbours of one client are
// released by one transaction, in spite of other members between them.
func TestMultiIsReleasedInReverseOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var deleted [][]string
		srv := virtualServer(t, zkserver.WithObserver(func(x zkserver.Transaction) {
			var paths []string
			for _, change := range x.Changes {
				if change.Kind == zkserver.Deleted {
					paths = append(paths, lockOf(change.Path))
				}
			}
			if paths != nil {
				mu.Lock()
				defer mu.Unlock()
				deleted = append(deleted, paths)
			}
		}))
		takeDeleted := func() [][]string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			taken := deleted
			deleted = nil
			return taken
		}
		one, two := virtualClient(t, srv), virtualClient(t, srv)
		locks := []lock.Locker{
			newMutex(t, one, "/joint/a"), newMutex(t, one, "/joint/b"),
			newUnfairMutex(t, one, "/joint/c"),
			newMutex(t, one, "/joint/d"), newMutex(t, one, "/joint/e"),
			newMutex(t, two, "/joint/f"), newMutex(t, two, "/joint/g"),
		}
		want := [][]string{{"/joint/g", "/joint/f"}, {"/joint/e", "/joint/d"}, {"/joint/c"}, {"/joint/b", "/joint/a"}}
		for range 2 {
			lease := mustLock(t, newMulti(t, locks...))
			takeDeleted()
			mustRelease(t, lease)
			if got := takeDeleted(); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("released as %v, want %v", got, want)
			}
		}
		failing := &foreign{path: "/joint/h", err: errors.New("refusal")}
		wantErr(t, "Lock", errOf(newMulti(t, append(locks, failing)...).Lock(t.Context())), failing.err)
		wantErr(t, "Lock of foreign locks alone", errOf(newMulti(t, failing).Lock(t.Context())), failing.err)
		if got := slices.Concat(takeDeleted()...); !slices.Equal(got, slices.Concat(want...)) {
			t.Errorf("undone as %v, want %v", got, slices.Concat(want...))
		}
	})
}

// lockOf returns the lock of the test above to which a znode belongs.
func lockOf(node string) string { return node[:len("/joint/a")] }

// TestAMultiIsLeftWhenAForeignLockerPanics holds two members when the third one panics.
func TestAMultiIsLeftWhenAForeignLockerPanics(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		m := newMulti(t, newMutex(t, c, "/panic/a"), newSemaphoreMutex(t, c, "/panic/b"), panickingLocker{})
		for _, acquire := range []func(context.Context) (*lock.Lease, error){m.Lock, m.TryLock} {
			func() {
				defer func() {
					if v := recover(); fmt.Sprint(v) != "by the test" {
						t.Errorf("recovered %v, want the locker's panic", v)
					}
				}()
				_, _ = acquire(t.Context())
			}()
			await(time.Minute)
			for _, s := range srv.Sessions() {
				if len(s.Ephemerals) > 0 {
					t.Errorf("orphans %q", s.Ephemerals)
				}
			}
		}
	})
}

// A panickingLocker is a lock of the user's own.
type panickingLocker struct{}

func (panickingLocker) Lock(context.Context) (*lock.Lease, error)    { panic("by the test") }
func (panickingLocker) TryLock(context.Context) (*lock.Lease, error) { panic("by the test") }
func (panickingLocker) Path() string                                 { return "/panic/z" }

// visitTogether locks the paths by one Multi, in the order given.
func visitTogether(ctx context.Context, t testing.TB, c *framework.Client, oracles map[string]*locktest.Oracle, paths []string) {
	t.Helper()
	lease, err := newMulti(t, newMutexes(t, c, paths...)...).Lock(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	for _, member := range lease.Members() {
		oracles[member.Path()].Enter(member)
	}
	for _, member := range lease.Members() {
		oracles[member.Path()].Leave(member)
	}
	wantErr(t, "release", lease.Release(ctx), nil)
}

// visitNested locks the paths one within the other, in the order given.
func visitNested(ctx context.Context, t testing.TB, c *framework.Client, oracles map[string]*locktest.Oracle, paths []string) {
	t.Helper()
	if len(paths) == 0 {
		return
	}
	lease, err := newMutex(t, c, paths[0]).Lock(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	oracles[paths[0]].Enter(lease)
	visitNested(ctx, t, c, oracles, paths[1:])
	oracles[paths[0]].Leave(lease)
	wantErr(t, "release", lease.Release(ctx), nil)
}

// TestNoDeadlockAmongMultisAndNestedLocks has goroutines of two clients lock
// random subsets of six paths, by Multis in random order and by mutexes nested in
// path order. Nothing in it times out: it ends, or the test never does.
func TestNoDeadlockAmongMultisAndNestedLocks(t *testing.T) {
	const clients, goroutines, acquisitions = 2, 4, 2000
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		paths, oracles := numbered("/multi/trial", 6), make(map[string]*locktest.Oracle)
		for _, path := range paths {
			oracles[path] = locktest.NewOracle(t)
		}
		ctx := context.Background()
		var wg sync.WaitGroup
		for i := range clients {
			c := env.Client(t)
			for j := range goroutines {
				random := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				wg.Go(func() {
					for range acquisitions / clients / goroutines {
						chosen := slices.Clone(paths)
						random.Shuffle(len(chosen), func(a, b int) { chosen[a], chosen[b] = chosen[b], chosen[a] })
						chosen = chosen[:1+random.IntN(len(chosen))]
						if random.IntN(3) > 0 {
							visitTogether(ctx, t, c, oracles, chosen)
							continue
						}
						slices.Sort(chosen)
						visitNested(ctx, t, c, oracles, chosen)
					}
				})
			}
		}
		wg.Wait()
		visits := 0
		for _, oracle := range oracles {
			visits += oracle.Grants()
		}
		if visits < acquisitions {
			t.Errorf("%d visits in %d acquisitions", visits, acquisitions)
		}
	}, zkenv.Only("hundreds of thousands of requests: once in virtual time, once for real", zkenv.EmbeddedEnsemble, zkenv.Standalone))
}

// TestMultiGetsThroughWhereOthersOnlyTry has one Multi wait among others that try and withdraw at
// once, over and over.
func TestMultiGetsThroughWhereOthersOnlyTry(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
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

// A TryLock that re-enters finds its leases lost, and no server: it is bounded as any other one.
func TestMultiTryLockOfAReentryThatIsLost(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		m := newMulti(t, newMutexes(t, c, "/multi/a", "/multi/b")...)
		owned, cancel := context.WithTimeout(asOwner(t, "one"), time.Hour)
		defer cancel()
		held := mustLockAs(owned, t, m)
		ctx := &askedContext{Context: owned, asked: sync.OnceFunc(func() {
			must.OK(t, srv.Expire(c.Session().ID))
			<-held.Lost()
			srv.Refuse()
			srv.Cut()
		})}
		began := time.Now()
		_, err := m.TryLock(ctx)
		wantErr(t, "TryLock", err, framework.ErrNotConnected)
		wantErr(t, "the lease that was held", held.Err(), lock.ErrLost)
		if took := time.Since(began); took > c.ConnectTimeout()+time.Second {
			t.Errorf("TryLock took %v, want at most %v", took, c.ConnectTimeout())
		}
	})
}

// An askedContext calls asked when it is asked whether it has ended, or will.
type askedContext struct {
	context.Context

	asked func()
}

func (c *askedContext) Deadline() (time.Time, bool) { c.asked(); return c.Context.Deadline() }
func (c *askedContext) Done() <-chan struct{}       { c.asked(); return c.Context.Done() }
func (c *askedContext) Err() error                  { c.asked(); return c.Context.Err() }

// An embedding is a lock of another package that embeds one of this package, and so its path.
type embedding struct{ *lock.Mutex }

// TestMultiOrdersViewsByTheEnsemble has two Multis of the same two locks, one of them through a view in
// which the second lock's path sorts first. They must not deadlock, whatever kind the members are of.
func TestMultiOrdersViewsByTheEnsemble(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(t *testing.T, m *lock.Mutex) lock.Locker{
		"mutex":           func(_ *testing.T, m *lock.Mutex) lock.Locker { return m },
		"local":           func(t *testing.T, m *lock.Mutex) lock.Locker { t.Helper(); return newLocal(t, m, 10) },
		"embedding":       func(_ *testing.T, m *lock.Mutex) lock.Locker { return embedding{m} },
		"multi of one":    func(t *testing.T, m *lock.Mutex) lock.Locker { t.Helper(); return newMulti(t, m) },
		"multi of locals": func(t *testing.T, m *lock.Mutex) lock.Locker { t.Helper(); return newMulti(t, newLocal(t, m, 10)) },
	}
	for name, of := range kinds {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			a, b, third := virtualClient(t, srv), virtualClient(t, srv), virtualClient(t, srv)
			inside := must.Get(a.Namespace("zz"))(t)
			one := newMulti(t, of(t, newMutex(t, inside, "/b")), newMutex(t, a, "/c"))
			two := newMulti(t, newMutex(t, b, "/zz/b"), newMutex(t, b, "/c"))
			last, first := mustLock(t, newMutex(t, third, "/zz/b")), mustLock(t, newMutex(t, third, "/c"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			waiting := []<-chan result{lockLater(ctx, one), lockLater(ctx, two)}
			await(time.Second)
			mustRelease(t, last)
			mustRelease(t, first)
			var both sync.WaitGroup
			for _, done := range waiting {
				both.Go(func() {
					got := <-done
					if got.Err != nil {
						t.Errorf("two Multis wait for each other: %v", got.Err)
						return
					}
					mustRelease(t, got.Lease)
				})
			}
			both.Wait()
		})
	}
}

// A lateConn delivers what the server sends late.
type lateConn struct {
	net.Conn
	by time.Duration
}

func (c lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	await(c.by)
	return n, err
}

// TestTryLockOfLocalsIsBoundedAsAWhole tries ten Locals of a client to which each reply comes late.
func TestTryLockOfLocalsIsBoundedAsAWhole(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv, framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := srv.Dial(ctx, network, addr)
			return lateConn{conn, 400 * time.Millisecond}, err
		}))
		var locals []lock.Locker
		for _, path := range numbered("/locals", 10) {
			locals = append(locals, newLocal(t, newMutex(t, c, path), 3))
		}
		m := newMulti(t, locals...)
		begun := time.Now()
		wantErr(t, "TryLock", errOf(m.TryLock(t.Context())), framework.ErrNotConnected)
		if took := time.Since(begun); took > c.ConnectTimeout()+time.Second {
			t.Errorf("TryLock took %v; the connect timeout is %v", took, c.ConnectTimeout())
		}
	})
}

// TestGuardsCheckTheirOwnZnode runs a lease's guards in transactions of other views, in which their paths
// would name other znodes, or none.
func TestGuardsCheckTheirOwnZnode(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kinds, func(t *testing.T, k kind, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		one, two := must.Get(c.Namespace("one"))(t), must.Get(c.Namespace("two"))(t)
		m := newMulti(t, k.lock(t, one, "/a"), k.lock(t, two, "/b"))
		decoy := newMulti(t, k.lock(t, one, "/b"), k.lock(t, two, "/a")) // the same paths, the other way round
		lease, others := mustLock(t, m), mustLock(t, decoy)
		guards := lease.Guards()
		for _, runs := range []*framework.Client{c, one, two} {
			if _, err := runs.Txn(t.Context(), guards...); err != nil {
				t.Errorf("the guards of a lease that is held, in the view %q: %v", runs.AbsolutePath("/"), err)
			}
		}
		mustRelease(t, lease)
		for _, runs := range []*framework.Client{c, one, two} {
			_, err := runs.Txn(t.Context(), guards...)
			if !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrBadVersion) {
				t.Errorf("the guards of a lease that was released, in the view %q: %v", runs.AbsolutePath("/"), err)
			}
		}
		mustRelease(t, others)
	})
}

// TestAMultiWithoutAMember releases one member on its own: the rest has guards and a deadline of its own.
func TestAMultiWithoutAMember(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		one, two := virtualClient(t, srv), virtualClient(t, srv)
		m := newMulti(t, newMutex(t, one, "/a"), newMutex(t, two, "/b"))
		lease := mustLock(t, m)
		first, rest := lease.Members()[0], lease.Members()[1]
		mustRelease(t, first)
		must.OK(t, one.Close())
		if _, err := two.Txn(t.Context(), lease.Guards()...); err != nil {
			t.Errorf("the guards after a member's release: %v", err)
		}
		await(time.Minute) // the released member's client proves nothing any more
		if got, want := lease.Deadline(), rest.Deadline(); !got.Equal(want) {
			t.Errorf("the deadline is %v, that of the remaining member %v", got, want)
		}
		mustRelease(t, lease)
	})
}
