package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// TestUnfairMutexReleaseAfterAnOperatorsDeletion holds the release's deletion up until an operator
// has deleted the holder's znode and another client has locked.
func TestUnfairMutexReleaseAfterAnOperatorsDeletion(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/operator"
		c, route := onRoute(t, env)
		other := env.Client(t) // now, because a request can't be held for long
		lease := mustLock(t, newUnfairMutex(t, c, path))
		stuck := []*fault.Handle{
			route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.HoldRequest}),
			route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldRequest}),
		}
		released := make(chan error, 1)
		go func() { released <- lease.Release(t.Context()) }()
		select {
		case <-stuck[0].Hit():
		case <-stuck[1].Hit():
		}
		must.OK(t, other.Delete(t.Context(), path))
		next := mustLock(t, newUnfairMutex(t, other, path))
		for _, rule := range stuck {
			rule.Release()
		}
		if err := must.Receive(t, released, "the release"); !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("release: %v, want ErrNodeDeleted", err)
		}
		mustHold(t, other, next)
		mustRelease(t, next)
	})
}

// TestUnfairMutexCleanUpAfterAnOperatorsDeletion loses the reply to the create and holds the
// clean-up's deletion up, until an operator has deleted the znode and another client has locked.
func TestUnfairMutexCleanUpAfterAnOperatorsDeletion(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/operator-clean-up"
		c, route := onRoute(t, env)
		e := newUnfairMutex(t, c, path)
		mustRelease(t, mustLock(t, e))
		lost := []*fault.Handle{
			route.Rules().Add(fault.Rule{Op: fault.Create, Path: path, Action: fault.HoldReply}),
			route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldReply}),
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := lockLater(ctx, e)
		select {
		case <-lost[0].Hit():
		case <-lost[1].Hit():
		}
		stuck := []*fault.Handle{
			route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.HoldRequest}),
			route.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.HoldRequest}),
		}
		cancel()
		must.Receive(t, done, "the end of Lock")
		for _, rule := range lost {
			rule.Release()
		}
		select {
		case <-stuck[0].Hit():
		case <-stuck[1].Hit():
		}
		other := env.Client(t)
		must.OK(t, other.Delete(t.Context(), path))
		next := mustLock(t, newUnfairMutex(t, other, path))
		for _, rule := range stuck {
			rule.Release()
		}
		zktest.Eventually(t, generous, "the clean-up is done", func() bool { return c.PendingDeletes() == 0 })
		mustHold(t, other, next)
		mustRelease(t, next)
	})
}

// TestUnfairMutexReleaseAfterTheEpochChanged has an operator write to the epoch, or delete it, while
// the lock is held: the release still deletes the holder's znode.
func TestUnfairMutexReleaseAfterTheEpochChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *framework.Client, string) error{
		"written": func(t *testing.T, c *framework.Client, epoch string) error {
			_, err := c.Set(t.Context(), epoch, nil, framework.AnyVersion)
			return err
		},
		"deleted": func(t *testing.T, c *framework.Client, epoch string) error {
			return c.Delete(t.Context(), epoch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				path := "/unfair/epoch/" + name
				c := env.Client(t)
				e := newUnfairMutex(t, c, path)
				lease := mustLock(t, e)
				must.OK(t, change(t, c, framework.EpochOf(path)))
				mustRelease(t, lease)
				if _, ok, err := c.Exists(t.Context(), path); ok || err != nil {
					t.Errorf("the znode after the release: %v, %v", ok, err)
				}
				mustRelease(t, mustTry(t, e))
			})
		})
	}
}

// TestUnfairMutexGuard writes under the guard: as the holder, after an operator's deletion, and
// when another client has the lock.
func TestUnfairMutexGuard(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/guard"
		c, other := env.Client(t), env.Client(t)
		createDirs(t, c, "/unfair/guarded")
		lease := mustLock(t, newUnfairMutex(t, c, path))
		write := func() error {
			set := framework.OpSet("/unfair/guarded", nil, framework.AnyVersion)
			results, err := c.Txn(t.Context(), lease.Guard(), set)
			if err == nil && len(results) != 2 {
				t.Errorf("%d results of 2 operations", len(results))
			}
			return err
		}
		refused := func(when string, want error) {
			t.Helper()
			culprit := new(framework.TxnError)
			if err := write(); !errors.Is(err, want) || !errors.As(err, &culprit) || culprit.Index != 0 {
				t.Errorf("guarded write %s: %v, want %v of operation 0", when, err, want)
			}
		}
		if err := write(); err != nil {
			t.Errorf("guarded write of the holder: %v", err)
		}
		must.OK(t, other.Delete(t.Context(), path))
		refused("after an operator's deletion", framework.ErrNoNode)
		next := mustLock(t, newUnfairMutex(t, other, path))
		refused("under the next holder", framework.ErrBadVersion)
		mustRelease(t, next)
	})
}

// TestUnfairMutexGuardInAMulti writes under the guards of a Multi's lease when another client has
// the lock of its only member.
func TestUnfairMutexGuardInAMulti(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/unfair/multi-guard"
		c, other := env.Client(t), env.Client(t)
		lease := mustLock(t, newMulti(t, newUnfairMutex(t, c, path)))
		if _, err := c.Txn(t.Context(), lease.Guards()...); err != nil {
			t.Errorf("guarded transaction of the holder: %v", err)
		}
		must.OK(t, other.Delete(t.Context(), path))
		next := mustLock(t, newUnfairMutex(t, other, path))
		if _, err := c.Txn(t.Context(), lease.Guards()...); !errors.Is(err, framework.ErrBadVersion) {
			t.Errorf("transaction with Guards under the next holder: %v, want ErrBadVersion", err)
		}
		if _, err := c.Txn(t.Context(), lease.Guard()); !errors.Is(err, errNoGuard) {
			t.Errorf("transaction with the Guard of the whole: %v, want ErrNoGuard", err)
		}
		mustRelease(t, next)
	})
}

// TestUnfairMutexNeedsAnEpochThatItMayWrite has an ACL with which only the first Lock could succeed.
func TestUnfairMutexNeedsAnEpochThatItMayWrite(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		createDirs(t, c, "/unfair-readonly")
		e := newUnfairMutex(t, c, "/unfair-readonly/lock", recipes.WithACL(acl.ReadOnly()...))
		if _, err := e.Lock(t.Context()); err == nil || !strings.Contains(err.Error(), "must permit to read and to write") {
			t.Errorf("Lock: %v, want a refusal of the ACL", err)
		}
		left, _, err := c.Children(t.Context(), "/unfair-readonly")
		if err != nil || len(left) != 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	})
}

// TestUnfairMutexEpochIsNoOtherLocks has the epochs of a lock be at no path that another lock can have:
// users' keys are paths, and any key may follow any other.
func TestUnfairMutexEpochIsNoOtherLocks(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		const path = "/unfair-keys/a"
		mustRelease(t, mustLock(t, newUnfairMutex(t, c, path)))
		epoch := framework.EpochOf(path)
		for _, key := range []string{path + ".epoch", path + "-epoch", "/unfair-keys/epoch"} {
			other := newUnfairMutex(t, c, key, recipes.WithData([]byte("held")))
			mustRelease(t, mustTry(t, other)) // after the first lock was used
			held := mustTry(t, other)
			mustRelease(t, mustTry(t, newUnfairMutex(t, c, path))) // while the other is held
			found := must.Get(other.Participants(t.Context()))(t)
			if len(found) != 1 || string(found[0].Data) != "held" || found[0].Metadata == nil {
				t.Errorf("holder of %s after a lock of %s: %+v, want its data and metadata", key, path, found)
			}
			mustRelease(t, held)
		}
		view := must.Get(c.Namespace(strings.TrimPrefix(epoch, "/")))(t)
		for name, target := range map[string]struct {
			client *framework.Client
			path   string
		}{
			"the epoch": {c, epoch}, "below the epoch": {c, epoch + "/b"}, "in a namespace": {view, "/b"},
		} {
			for kind, construct := range map[string]func() error{
				"mutex":           func() error { _, err := lock.NewMutex(target.client, target.path); return err },
				"unfair mutex":    func() error { _, err := lock.NewUnfairMutex(target.client, target.path); return err },
				"semaphore mutex": func() error { _, err := lock.NewSemaphoreMutex(target.client, target.path); return err },
				"read/write lock": func() error { _, err := lock.NewRWMutex(target.client, target.path); return err },
			} {
				if err := construct(); err == nil || !strings.Contains(err.Error(), "is the epoch of another lock") {
					t.Errorf("new %s at %s: %v, want a refusal", kind, name, err)
				}
			}
		}
	}, oneOfEach())
}
