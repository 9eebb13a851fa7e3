package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
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
				if err := lease.Release(t.Context()); err != nil {
					t.Errorf("%v of the %s: release: %v", action, what, err)
				}
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
		if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("second release: %v, want ErrReleased", err)
		}
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
		held := mustLock(t, newMutex(t, holder, paths[2]))
		done := lockLater(t.Context(), newMulti(t, newMutexes(t, c, paths...)...))
		awaitEach(t, holder, paths, 1, 1, 2, 0)
		zktest.Eventually(t, generous, "watches on its own three znodes and on the one ahead", func() bool {
			return route.Count(fault.GetData) == 4
		})
		deleteNode(t, holder, framework.JoinPath(paths[0], contenders(t, holder, paths[0])[0]))
		zktest.Eventually(t, generous, "the look for what fired", func() bool { return route.Count(fault.GetData) == 5 })
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
		var told []string
		var locks []lock.Locker
		for _, path := range slices.Backward(paths) {
			exclusive := must.Get(lock.NewUnfairMutex(c, path))(t)
			locks = append(locks, &foreign{Locker: exclusive, path: path, told: func(what string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, what)
			}})
		}
		locks[0].(*foreign).err = refusal
		lease, err := newMulti(t, locks...).Lock(t.Context())
		if lease != nil || !errors.Is(err, refusal) {
			t.Errorf("%v, %v; want no lease and the member's error", lease, err)
		}
		want := []string{"lock " + paths[0], "lock " + paths[1], "lock " + paths[2], "lock " + paths[3]}
		if !slices.Equal(told, want) {
			t.Errorf("calls %q, want %q", told, want)
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
		if got.lease != nil || !errors.Is(got.err, context.Canceled) {
			t.Errorf("%v, %v; want no lease and context.Canceled", got.lease, got.err)
		}
		route.Heal()
		awaitEach(t, observer, paths, 0, 0, 0, 1)
		mustRelease(t, held)
	})
}
