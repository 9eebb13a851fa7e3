package lock_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// Scenarios of Curator's own tests that no other test has; lab/interop/curator-tests.md
// has all of them.

// As testKilledSession: holder and waiter are of one client, whose session ends.
// Other than there, the holder is told.
func TestCuratorSessionIsKilledUnderHolderAndWaiter(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/curator/killed"
		c, route := onRoute(t, env)
		m := newMutex(t, c, path)
		held := mustLock(t, m)
		waiter := lock.ContextWithOwner(t.Context(), lock.NewOwner("waiter"))
		done := lockLater(waiter, m)
		awaitContenders(t, c, path, 2)
		route.Expire(t)
		must.Receive(t, held.Lost(), "the holder's loss")
		var lost *lock.LostError
		if !errors.As(held.Err(), &lost) || !errors.Is(lost, framework.ErrSessionEnded) {
			t.Errorf("the holder's lease: %v, want a LostError that wraps ErrSessionEnded", held.Err())
		}
		got := must.Receive(t, done, "the waiter's grant in the next session")
		if got.err != nil {
			t.Fatal(got.err)
		}
		if err := held.Release(t.Context()); !errors.As(err, &lost) {
			t.Errorf("release of what was lost: %v, want a LostError", err)
		}
		if err := got.lease.Err(); err != nil {
			t.Errorf("the waiter's lease: %v", err)
		}
		mustRelease(t, got.lease)
	})
}

// As testWithNamespace, and the znodes are where others look for them.
func TestCuratorNamespace(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		spaced := must.Get(c.Namespace("curator-namespace"))(t)
		held := mustLock(t, newMutex(t, spaced, "/a/lock"))
		if n := len(contenders(t, c, "/curator-namespace/a/lock")); n != 1 {
			t.Errorf("%d contenders below the namespace, want 1", n)
		}
		other := newMutex(t, env.Client(t), "/curator-namespace/a/lock")
		if lease, err := other.TryLock(t.Context()); lease != nil || !errors.Is(err, lock.ErrHeld) {
			t.Errorf("TryLock by the full path: %v, %v, want ErrHeld", lease, err)
		}
		mustRelease(t, held)
		mustRelease(t, mustLock(t, other))
	})
}

// As testLockACLs and testACLsCreatingParents: what the lock creates has the
// ACL that is given to it, and each parent that of the client's provider otherwise.
func TestCuratorACLs(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		open := []acl.Entry{{Perms: acl.All, Scheme: "world", ID: "anyone"}}
		some := []acl.Entry{{Perms: acl.All &^ acl.Admin, Scheme: "world", ID: "anyone"}}
		provider := func(path string) []acl.Entry {
			if path == "/curator-acl/parent" {
				return some
			}
			return open
		}
		c := env.Client(t, framework.WithACLProvider(provider))
		check := func(lease *lock.Lease, want map[string][]acl.Entry) {
			t.Helper()
			for path, acl := range want {
				if got, _, err := c.ACL(t.Context(), path); err != nil || !slices.Equal(got, acl) {
					t.Errorf("%s has %v (%v), want %v", path, got, err, acl)
				}
			}
			mustRelease(t, lease)
		}
		lease := mustLock(t, newMutex(t, c, "/curator-acl/parent/lock"))
		check(lease, map[string][]acl.Entry{
			"/curator-acl/parent": some, "/curator-acl/parent/lock": open, lease.Node(): open,
		})
		rw := must.Get(lock.NewRWMutex(c, "/curator-acl-given/lock", recipes.WithACL(some...)))(t)
		lease = mustLock(t, rw.Write())
		check(lease, map[string][]acl.Entry{
			"/curator-acl-given": some, "/curator-acl-given/lock": some, lease.Node(): some,
		})
	})
}

// As testAttemptLockFailedException: what failed first is what Lock returns, and
// the attempt's znode goes.
func TestCuratorErrorOfTheAttemptIsReturned(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/curator/failed"
		c, route := onRoute(t, env, framework.WithRetry(retry.Never()))
		lost := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.DropReply})
		ctx, cancel := context.WithTimeout(t.Context(), generous)
		defer cancel()
		lease, err := newMutex(t, c, path).Lock(ctx)
		if lease != nil || !errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("Lock: %v, %v, want ErrUnknownOutcome", lease, err)
		}
		must.Receive(t, lost.Hit(), "the loss of the reply")
		observer := env.Client(t)
		awaitContenders(t, observer, path, 0)
		mustRelease(t, mustLock(t, newMutex(t, observer, path)))
	})
}

// As testNodeDeletedCleanlyWithFaults: the queue can't be listed, for good.
func TestCuratorQueueThatCanNotBeListed(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/curator-unreadable"
		c, operator := env.Client(t), newOperator(t, env) // since 3.8.4 and 3.9.2, exists needs READ
		blind := acl.Entry{Perms: acl.Create | acl.Delete, Scheme: "world", ID: "anyone"}
		_, err := operator.Create(t.Context(), path, nil, framework.WithACL(blind, digest("operator", "secret", acl.All)))
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			t.Fatal(err)
		}
		before, _ := must.Get2(operator.Exists(t.Context(), path))(t)
		ctx, cancel := context.WithTimeout(t.Context(), generous)
		defer cancel()
		m := newMutex(t, c, path, recipes.WithACL(acl.Open()...))
		for name, attempt := range map[string]func(context.Context) (*lock.Lease, error){"Lock": m.Lock, "TryLock": m.TryLock} {
			lease, err := attempt(ctx)
			if lease != nil || !errors.Is(err, framework.ErrNoAuth) {
				t.Errorf("%s: %v, %v, want ErrNoAuth", name, lease, err)
			}
		}
		zktest.Eventually(t, generous, "the attempts' znodes are gone", func() bool {
			st, ok, err := operator.Exists(t.Context(), path)
			return err == nil && ok && st.NumChildren == 0
		})
		if st, _, err := operator.Exists(t.Context(), path); err != nil || st.Cversion == before.Cversion {
			t.Errorf("no child came or went (%v): there was no attempt", err)
		}
	})
}

// As testSetNodeData: the lock has a copy of its data.
func TestCuratorDataIsCopied(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		data := []byte("first")
		rw := must.Get(lock.NewRWMutex(c, "/curator/data", recipes.WithData(data), recipes.WithoutMetadata()))(t)
		copy(data, "later")
		for _, side := range []lock.Locker{rw.Write(), rw.Read()} {
			lease := mustLock(t, side)
			if got, _, err := c.Get(t.Context(), lease.Node()); err != nil || string(got) != "first" {
				t.Errorf("the znode holds %q, %v", got, err)
			}
			mustRelease(t, lease)
		}
	})
}
