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
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMultiFindsItsZnodesWhenTheReplyIsLost(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/lost", 4)
		observer := env.Client(t)
		c, route := onRoute(t, env)
		keepDirectories(t, observer, paths)
		m := newMulti(t, newMutexes(t, c, paths...)...)
		for _, action := range []fault.Action{fault.DropReply, fault.CutBefore} {
			for skip, what := range []string{"creates", "deletes"} {
				rule := route.Rules().Add(fault.Rule{Op: fault.Multi, Action: action, Skip: skip})
				lease := mustLock(t, m)
				awaitEach(t, observer, paths, 2)
				fence := firstOf(lease).Fence()
				if st, _, err := observer.Exists(t.Context(), firstOf(lease).Node()); err != nil || st.Czxid != fence {
					t.Errorf("%v of the %s: fence %d, czxid %d (%v)", action, what, fence, st.Czxid, err)
				}
				wantErr(t, fmt.Sprintf("%v of the %s: release", action, what), lease.Release(t.Context()), nil)
				if rule.Hits() != 1 {
					t.Fatalf("%v of the %s: %d hits, want 1", action, what, rule.Hits())
				}
				awaitEach(t, observer, paths, 1)
			}
		}
	})
}

// TestMultiOfWhichOneIsLostIsLost has an operator delete a member's znode: the
// lease of all is lost, the others go, and the release names the one
// (redisson/redisson#5484, #4031).
func TestMultiOfWhichOneIsLostIsLost(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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

func TestMulti_restarts_when_its_session_ends(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/session", 4)
		holder := env.Client(t)
		c, route := onRoute(t, env)
		held := mustLock(t, newMutex(t, holder, paths[2]))
		done := lockLater(t.Context(), newMulti(t, newMutexes(t, c, paths...)...))
		awaitEach(t, holder, paths, 1, 1, 2, 0)
		old := c.Session().ID
		route.Expire(t)
		zktest.Eventually(t, generous, "the end of the old session's znodes", func() bool { return len(env.Ephemerals(t, old)) == 0 })
		mustRelease(t, held)
		lease := granted(t, done, "the grant in the next session")
		if err := lease.Err(); err != nil || c.Session().ID == old {
			t.Errorf("lease %v in session %#x after %#x", err, c.Session().ID, old)
		}
		awaitEach(t, holder, paths, 1)
		mustRelease(t, lease)
		awaitEach(t, holder, paths, 0)
	}, zkenv.Breakable())
}

func TestMulti_restarts_when_a_member_is_deleted(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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
		deleteNode(t, holder, framework.JoinPath(paths[0], contenders(t, holder, paths[0])[0]))
		zktest.Eventually(t, generous, "the look for what fired", func() bool { return route.Count(fault.GetData) == before+5 })
		env.Quiesce()
		mustRelease(t, held)
		lease := granted(t, done, "the grant of all")
		awaitEach(t, holder, paths, 1)
		mustRelease(t, lease)
	})
}

// TestMultiUndoesInReverse has the last of several locks fail, each released by
// itself: the order of the deletions is the reverse of the order of locking.
func TestMultiUndoesInReverse(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/reverse", 4)
		c, route := onRoute(t, env)
		refusal := errors.New("refusal")
		var mu sync.Mutex
		var calls []string
		var locks []lock.Locker
		for _, path := range slices.Backward(paths) {
			exclusive := must.Get(lock.NewUnfairMutex(c, path))(t)
			locks = append(locks, &foreign{Locker: exclusive, path: path, report: func(what string) {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, what)
			}})
		}
		locks[0].(*foreign).err = refusal
		lease, err := newMulti(t, locks...).Lock(t.Context())
		if lease != nil || !errors.Is(err, refusal) {
			t.Errorf("%v, %v; want no lease and the member's error", lease, err)
		}
		want := []string{"lock " + paths[0], "lock " + paths[1], "lock " + paths[2], "lock " + paths[3]}
		if !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
		var deleted []string
		for _, rq := range route.Requests() {
			for _, part := range rq.Parts {
				if part.Op == fault.Delete {
					deleted = append(deleted, part.Path)
				}
			}
		}
		if want := []string{paths[2], paths[1], paths[0]}; !slices.Equal(deleted, want) {
			t.Errorf("deletions %q, want %q", deleted, want)
		}
	})
}

// TestMultiReturnsWhenItsContextEndsWithNoServer: the release of the members that were locked
// delays no caller, because it runs in the background.
func TestMultiReturnsWhenItsContextEndsWithNoServer(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		paths := numbered("/multi/unreachable", 4)
		observer := env.Client(t)
		c, route := onRoute(t, env)
		held := mustLock(t, newMutex(t, observer, paths[3]))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := lockLater(ctx, newMulti(t, newMutexes(t, c, paths...)...))
		awaitEach(t, observer, paths, 1, 1, 1, 2)
		route.Refuse()
		route.Cut()
		cancel()
		got := must.Receive(t, done, "Lock's return")
		if got.Lease != nil || !errors.Is(got.Err, context.Canceled) {
			t.Errorf("%v, %v; want no lease and context.Canceled", got.Lease, got.Err)
		}
		route.Heal()
		awaitEach(t, observer, paths, 0, 0, 0, 1)
		mustRelease(t, held)
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

// A Multi releases its members in reverse order. Neighbours of one client are released by one
// transaction, in spite of other members between them.
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
		one, two := virtualClient(t, srv), virtualClient(t, srv)
		m := newMulti(t,
			newMutex(t, one, "/joint/a"), newMutex(t, one, "/joint/b"),
			newUnfairMutex(t, one, "/joint/c"),
			newMutex(t, one, "/joint/d"), newMutex(t, one, "/joint/e"),
			newMutex(t, two, "/joint/f"), newMutex(t, two, "/joint/g"))
		for range 2 {
			lease := mustLock(t, m)
			mu.Lock()
			deleted = nil
			mu.Unlock()
			mustRelease(t, lease)
			synctest.Wait()
			mu.Lock()
			want := [][]string{{"/joint/g", "/joint/f"}, {"/joint/e", "/joint/d"}, {"/joint/c"}, {"/joint/b", "/joint/a"}}
			if !slices.EqualFunc(deleted, want, slices.Equal) {
				t.Errorf("released as %v, want %v", deleted, want)
			}
			mu.Unlock()
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
	wantErr(t, "release", lease.Release(ctx), nil)
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
	wantErr(t, "release", lease.Release(ctx), nil)
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
