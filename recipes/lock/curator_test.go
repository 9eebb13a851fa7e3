package lock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
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
		waiter := asOwner(t, "waiter")
		done := lockLater(waiter, m)
		awaitContenders(t, c, path, 2)
		route.Expire(t)
		must.Receive(t, held.Lost(), "the holder's loss")
		var lost *lock.LostError
		if !errors.As(held.Err(), &lost) || !errors.Is(lost, framework.ErrSessionEnded) {
			t.Errorf("the holder's lease: %v, want a LostError that wraps ErrSessionEnded", held.Err())
		}
		lease := granted(t, done, "the waiter's grant in the next session")
		if err := held.Release(t.Context()); !errors.As(err, &lost) {
			t.Errorf("release of what was lost: %v, want a LostError", err)
		}
		wantErr(t, "the waiter's lease", lease.Err(), nil)
		mustRelease(t, lease)
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
		wantErr(t, "TryLock by the full path", errOf(other.TryLock(t.Context())), lock.ErrHeld)
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

// As testContainerCleanup: goroutines come and go, and then the server removes the directory.
func TestCuratorDirectoryIsRemovedAfterUse(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/curator-directory/lock"
		c := env.Client(t)
		m := newMutex(t, c, path)
		var users sync.WaitGroup
		for range 10 {
			users.Go(func() {
				wantErr(t, "Do", lock.Do(t.Context(), m, func(context.Context, *lock.Lease) error { return nil }), nil)
			})
		}
		users.Wait()
		zktest.Eventually(t, generous, "the directory is gone", func() bool {
			_, ok, err := c.Exists(t.Context(), path)
			return err == nil && !ok
		})
	}, zkenv.AllOperations("containers are one of them"))
}

// As testLockPath: the session of a writer is killed, and another client reads. Of the writer's
// znode nothing is left.
func TestCuratorWriterIsKilled(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/curator/writer"
		c, route := onRoute(t, env)
		writing := mustLock(t, newReadWrite(t, c, path).Write())
		other := env.Client(t)
		reading := lockLater(t.Context(), newReadWrite(t, other, path).Read())
		awaitContenders(t, other, path, 2)
		route.Expire(t)
		must.Receive(t, writing.Lost(), "the writer's loss")
		lease := granted(t, reading, "the other's grant")
		if _, ok, err := other.Exists(t.Context(), writing.Node()); err != nil || ok {
			t.Errorf("the writer's znode exists: %v, %v", ok, err)
		}
		mustRelease(t, lease)
	})
}

// As testAttemptLockFailedException: the clean-up fails as well, and what failed first is what
// Lock returns.
func TestCuratorErrorOfTheCleanUpHidesNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/curator/blind"
		c := virtualClient(t, srv, framework.WithRetry(retry.Never()))
		blind := acl.Entry{Perms: acl.Create | acl.Delete, Scheme: "world", ID: "anyone"}
		must.Get(c.Create(t.Context(), path, nil, framework.WithACL(blind), framework.WithParents()))(t)
		failing := srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
		lease, err := newMutex(t, c, path, recipes.WithACL(acl.Open()...)).Lock(t.Context())
		if lease != nil || !errors.Is(err, framework.ErrNoAuth) {
			t.Errorf("Lock: %v, %v; want ErrNoAuth", lease, err)
		}
		must.Receive(t, failing.Hit(), "the failure to delete")
		mustLeaveNothing(t, srv, path)
	})
}

// As testKilledServerWithEnsembleProvider: the ensemble is replaced by one that knows nothing
// of the session. There is a holder before, none in between, and one afterwards.
func TestCuratorEnsembleIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path, former, latter = "/curator/replaced", "192.0.2.1:2181", "192.0.2.2:2181"
		servers := map[string]*zkserver.Server{former: virtualServer(t), latter: virtualServer(t)}
		c := newClient(t, former, framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return servers[addr].Dial(ctx, network, addr)
		}))
		m := newMutex(t, c, path)
		lease := mustLock(t, m)
		servers[former].Refuse()
		servers[former].Cut()
		must.Receive(t, lease.Lost(), "the loss of the lease")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if lease, err := m.TryLock(ctx); lease != nil || err == nil {
			t.Errorf("TryLock without an ensemble: %v, %v", lease, err)
		}
		must.OK(t, c.SetServers(latter))
		again := mustLock(t, m)
		if found := znodesBelow(servers[latter], path); len(found) != 1 || found[0] != again.Node() {
			t.Errorf("the other ensemble has %q, want %s", found, again.Node())
		}
		mustRelease(t, again)
	})
}

// As testCluster: many contend. No client acquires anything while there is no server, and with two
// of three servers back, acquiring continues.
func TestCuratorClusterStopsAndComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t, zkserver.WithFrontends(3))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var grants atomic.Int64
		var working sync.WaitGroup
		for range 6 {
			m := newSemaphoreMutex(t, virtualClient(t, srv), "/curator/cluster")
			working.Go(func() {
				for ctx.Err() == nil {
					lease, err := m.Lock(ctx)
					if err != nil {
						await(time.Second)
						continue
					}
					grants.Add(1)
					await(500 * time.Millisecond) // at work
					_ = lease.Release(ctx)        // lost with its session, where that ended
				}
			})
		}
		await(5 * time.Second)
		if grants.Load() == 0 {
			t.Error("no grants at first")
		}
		for _, f := range srv.Frontends() {
			f.Refuse()
			f.Cut()
		}
		synctest.Wait()
		before := grants.Load()
		await(time.Minute)
		if now := grants.Load(); now != before {
			t.Errorf("%d grants without a server", now-before)
		}
		for _, f := range srv.Frontends()[:2] {
			f.Accept()
		}
		await(time.Minute)
		if now := grants.Load(); now == before {
			t.Error("no grants with two servers back")
		}
		stop()
		working.Wait()
	})
}

// As LeaderLatch.testCorrectWatching: a contender in the middle of the queue leaves, and that
// grants no lock.
func TestCuratorMiddleOfTheQueueLeaves(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/curator/middle"
		held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		middle := virtualClient(t, srv)
		leaving := lockLater(t.Context(), newMutex(t, middle, path))
		synctest.Wait()
		last := lockLater(t.Context(), newMutex(t, virtualClient(t, srv), path))
		synctest.Wait()
		wantErr(t, "close", middle.Close(), nil)
		wantErr(t, "the one that left", failed(t, leaving, "the end of the wait"), framework.ErrClosed)
		mustWait(t, "the last", last)
		if found := znodesBelow(srv, path); len(found) != 2 {
			t.Errorf("znodes %q, want those of the holder and the last", found)
		}
		mustRelease(t, held)
		mustRelease(t, granted(t, last, "the last one's grant"))
	})
}

// As LeaderLatch.testNoServerAtStart and testProperCloseWithoutConnectionEstablished: an acquire
// that begins before there is a server succeeds once there is one. Without a server, the wait ends
// with the client.
func TestCuratorLockBeforeThereIsAServer(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		srv.Refuse()
		var clients [2]*framework.Client
		var waiting [2]<-chan result
		for i := range clients {
			c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial), framework.WithRetry(retry.Forever(time.Second))))(t)
			defer c.Close()
			clients[i], waiting[i] = c, lockLater(t.Context(), newMutex(t, c, "/curator/early"))
		}
		await(time.Minute)
		wantErr(t, "close", clients[0].Close(), nil)
		wantErr(t, "Lock of the closed client", failed(t, waiting[0], "the end of the wait"), framework.ErrClosed)
		srv.Accept()
		mustRelease(t, granted(t, waiting[1], "the other's grant"))
	})
}
