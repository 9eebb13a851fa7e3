package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestBoundedCalls freezes the servers under calls of every kind.
func TestBoundedCalls(t *testing.T) {
	t.Parallel()
	const wait = 200 * time.Millisecond
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c := env.Client(t)
		held := mustLock(t, k.lock(t, c, path+"/held"))
		free := k.lock(t, c, path+"/free")
		for _, member := range env.Members() {
			member.Freeze(t)
		}
		calls := map[string]func(context.Context) error{
			"Lock":    func(ctx context.Context) error { _, err := free.Lock(ctx); return err },
			"TryLock": func(ctx context.Context) error { _, err := free.TryLock(ctx); return err },
			"Release": held.Release,
		}
		if l, ok := free.(participator); ok {
			calls["Participants"] = func(ctx context.Context) error { _, err := l.Participants(ctx); return err }
		}
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			start := time.Now()
			err := call(ctx)
			cancel()
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
				t.Errorf("%s: %v after %v, want an error that matches DeadlineExceeded after %v", name, err, took, wait)
			}
		}
		for _, member := range env.Members() {
			member.Thaw(t)
		}
		awaitEphemerals(t, c, path, 0)
	}, zkenv.Breakable(), zkenv.Only("the contract has real servers that are silent", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// A participator is a lock that returns its holders and waiters.
type participator interface {
	Participants(ctx context.Context) ([]lock.Participant, error)
}

// TestCloseEndsHoldsAndWaits closes a client that holds the lock and waits for it.
func TestCloseEndsHoldsAndWaits(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kindsThat(kind.exclusive), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c := env.Client(t)
		l := k.lock(t, c, path)
		lease := mustLock(t, l)
		waiting := lockLater(t.Context(), l)
		env.Quiesce()
		if err := c.Close(); err != nil { // again at the end of the test
			t.Error(err)
		}
		if got := must.Receive(t, waiting, "the end of the wait"); !errors.Is(got.err, framework.ErrClosed) {
			t.Errorf("waiting Lock: %v, %v; want ErrClosed", got.lease, got.err)
		}
		must.Receive(t, lease.Lost(), "the loss")
		if err := lease.Err(); !errors.Is(err, framework.ErrClosed) || !errors.Is(err, lock.ErrLost) {
			t.Errorf("lease of the closed client: %v, want ErrLost and ErrClosed", err)
		}
		observer := env.Client(t)
		mustRelease(t, mustLock(t, k.lock(t, observer, path)))
		awaitEphemerals(t, observer, path, 0)
	}, oneOfEach())
}

// TestForeignChildren has nodes in the lock's directory that are no contenders: kazoo issue 309. For
// those that are by their names, see TestForeignChildrenOfALock.
func TestForeignChildren(t *testing.T) {
	t.Parallel()
	foreign := []string{
		"0", "content", "_c_x", "lock-", "lock-abc", "lock-12", "x-0000000000", "_c_short-lock-00000",
		"__READ__", "__WRIT__12",
	}
	eachKindAndEnv(t, kindsThat(inQueue), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c := env.Client(t)
		for _, name := range foreign {
			createDirs(t, c, path+"/"+name)
		}
		l := k.lock(t, c, path)
		lease := mustLock(t, l)
		if found := participantsOf(t, l); len(found) != 1 {
			t.Errorf("participants %v; want the holder alone", found)
		}
		mustRelease(t, lease)
	}, oneOfEach())
}

// TestOtherLibrariesContend has nodes by the names of other libraries in front:
// of Curator with a name of its own, and of go-zookeeper.
func TestOtherLibrariesContend(t *testing.T) {
	t.Parallel()
	const path = "/others"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		for i, prefix := range []string{"lock-", "_c_0123456789abcdef0123456789abcdef-lock-"} {
			path := fmt.Sprint(path, i)
			node := must.Get(c.Create(t.Context(), path+"/"+prefix, nil, framework.Ephemeral(), framework.Sequential(), framework.WithParents()))(t)
			m := newMutex(t, c, path)
			if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("TryLock behind %s: %v, want ErrHeld", node, err)
			}
			done := lockLater(t.Context(), m)
			awaitContenders(t, c, path, 2)
			must.OK(t, c.Delete(t.Context(), node))
			mustRelease(t, granted(t, done, "the lock"))
		}
	})
}

// TestOperatorDeletesAWaiter deletes a waiter's znode (etcd#11456: the lowest that remains is not
// that of the one that waits).
func TestOperatorDeletesAWaiter(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kindsThat(withParticipants), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		operator := env.Client(t)
		held := mustLock(t, k.rivalOf(t, operator, path))
		waiter := k.lock(t, env.Client(t), path)
		done := lockLater(t.Context(), waiter)
		awaitContenders(t, operator, path, 2)
		found := participantsOf(t, waiter)
		last := found[len(found)-1]
		deleteNode(t, operator, last.Path)
		zktest.Eventually(t, generous, "the waiter queues again", func() bool {
			now := participantsOf(t, waiter)
			return len(now) == len(found) && now[len(now)-1].Sequence > last.Sequence
		})
		mustWaitOn(t, done)
		mustRelease(t, held)
		mustRelease(t, granted(t, done, "the lock"))
	}, oneOfEach())
}

// TestOperatorDeletesTheHolder deletes the holder's znode, after a grant at once and after a wait.
// The holder notices it by its watch, or by its release.
func TestOperatorDeletesTheHolder(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		operator, c := env.Client(t), env.Client(t)
		l := k.lock(t, c, path)
		for _, waited := range []bool{false, true} {
			for _, noticed := range []bool{true, false} {
				var lease *lock.Lease
				if waited {
					held := mustLock(t, k.rivalOf(t, operator, path))
					done := lockLater(t.Context(), l)
					env.Quiesce()
					mustRelease(t, held)
					lease = granted(t, done, "the lock")
				} else {
					lease = mustLock(t, l)
				}
				deleteNode(t, operator, firstOf(lease).Node())
				if noticed {
					must.Receive(t, lease.Lost(), "the loss")
				}
				if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrNodeDeleted) || !errors.Is(err, lock.ErrLost) {
					t.Errorf("release (waited %v, noticed %v): %v, want ErrLost and ErrNodeDeleted", waited, noticed, err)
				}
			}
		}
		awaitEphemerals(t, operator, path, 0)
	}, oneOfEach())
}
