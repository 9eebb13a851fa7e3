package lock_test

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
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestMultiOfWhichOneIsLostIsLost has an operator delete a member's znode: the
// lease of all is lost, the others go, and the release names the one
// (redisson/redisson#5484, #4031).
func TestMultiOfWhichOneIsLostIsLost(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/deleted", 4)
		c, operator := env.Client(t), env.Client(t)
		m := newMulti(t, newMutexes(t, c, paths...)...)
		lease := mustLock(t, m)
		ctx, cancel := lease.Context(t.Context())
		defer cancel()
		deleteNode(t, operator, lease.Members()[1].Node())
		must.Receive(t, lease.Lost(), "the loss")
		must.Receive(t, ctx.Done(), "the end of the lease's context")
		for what, err := range map[string]error{"Err": lease.Err(), "cause": context.Cause(ctx), "Release": lease.Release(t.Context())} {
			var all, one *lock.LostError
			if !errors.As(err, &all) || all.Path != m.Path() || !errors.As(all.Cause, &one) || one.Path != paths[1] || !errors.Is(err, lock.ErrNodeDeleted) {
				t.Errorf("%s: %v, want a LostError of all with the LostError of %s", what, err, paths[1])
			}
		}
		wantErr(t, "second release", lease.Release(t.Context()), lock.ErrReleased)
		awaitEach(t, operator, paths, 0)
		mustRelease(t, mustLock(t, newMulti(t, newMutexes(t, operator, paths...)...)))
	})
}

// TestMultiReleasesWhatItHoldsWhenSomeAreGone has the release meet a znode that an operator
// deleted a moment ago: one transaction of all can't succeed then.
func TestMultiReleasesWhatItHoldsWhenSomeAreGone(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/gone", 4)
		c, route := onRoute(t, env)
		operator := env.Client(t)
		lease := mustLock(t, newMulti(t, newMutexes(t, c, paths...)...))
		node := lease.Members()[2].Node()
		held := route.Rules().Add(fault.Rule{Op: fault.Event, Path: node, Action: fault.DropEvent, Times: fault.Forever})
		defer held.Release()
		early := lease.Members()[0]
		mustRelease(t, early)
		deleteNode(t, operator, node)
		err := lease.Release(t.Context())
		if !errors.Is(err, lock.ErrNodeDeleted) || strings.Count(err.Error(), "lost "+paths[2]) != 1 {
			t.Errorf("release: %v, want the loss of %s", err, paths[2])
		}
		awaitEach(t, operator, paths, 0)
	})
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

// TestMulti_deleted_after_an_unknown_outcome cuts the connection before the
// transaction of a release, of whose znodes an operator has deleted one.
func TestMulti_deleted_after_an_unknown_outcome(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c, operator := virtualClient(t, srv), virtualClient(t, srv)
		lease := mustLock(t, newMulti(t, newMutexes(t, c, "/unknown/a", "/unknown/b", "/unknown/c")...))
		must.OK(t, operator.Delete(t.Context(), lease.Members()[1].Node()))
		cut := srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/unknown/a/*", Action: fault.CutBefore})
		var lost *lock.LostError
		if err := lease.Release(t.Context()); !errors.As(err, &lost) || lost.Path != "/unknown/b" || !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("Release: %v, want that /unknown/b was lost by a deletion", err)
		}
		if cut.Hits() != 1 {
			t.Errorf("%d transactions cut, want 1", cut.Hits())
		}
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
