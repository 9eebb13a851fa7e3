package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// multiBehindItsSecond is a kind that waits while it holds a member.
var multiBehindItsSecond = kind{
	name: "multi behind its second", lock: multiAt,
	rival: func(t testing.TB, c *framework.Client, path string, _ ...lock.Option) lock.Locker {
		return secondMemberAt(t, c, path)
	},
}

// TestWaiterContinuesInTheNextSession ends the session of a waiter, behind a holder of another session or of
// its own.
func TestWaiterContinuesInTheNextSession(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, append(slices.Clone(kinds), multiBehindItsSecond), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		observer := env.Client(t)
		for _, own := range []bool{false, true} {
			c, route := onRoute(t, env)
			holder := observer
			if own {
				holder = c
			}
			held := mustLockAs(asOwner(t, "holder"), t, k.rivalOf(t, holder, path))
			route.ResetRequests()
			done := lockLater(t.Context(), k.lock(t, c, path))
			if own {
				env.Quiesce() // an unfair mutex and a Local wait without a request
			} else {
				awaitWait(t, route, path)
			}
			old := c.Session().ID
			route.ResetRequests()
			route.Expire(t)
			if own {
				must.Receive(t, held.Lost(), "the holder's loss")
				wantErr(t, "the holder's lease", held.Err(), lock.ErrLost, framework.ErrSessionEnded)
			} else {
				awaitWait(t, route, path)
				mustRelease(t, held)
			}
			lease := granted(t, done, "the lock in the next session")
			mustHold(t, observer, lease)
			if own {
				wantErr(t, "the holder's release", held.Release(t.Context()), lock.ErrLost)
			}
			wantErr(t, "the waiter's lease", lease.Err(), nil)
			if c.Session().ID == old {
				t.Errorf("granted in session %#x, which has ended", old)
			}
			mustRelease(t, lease)
			awaitEphemerals(t, observer, path, 0)
		}
	}, oneOfEach())
}

// awaitWait waits until a client on the route has begun to watch the lock's znodes.
func awaitWait(t testing.TB, route *zkenv.Route, path string) {
	t.Helper()
	zktest.Eventually(t, generous, "it waits", func() bool { return count(route, path, fault.GetData) > 0 })
}

// TestWaiterKeepsItsPlaceThroughAnOutage cuts the connections of the holder, which keeps its lease, and of a
// waiter, once while the lock is released (zk-ruby 51, kazoo 282: it must neither queue twice nor hang). A leader keeps
// its term in the same way (FLINK-10052).
func TestWaiterKeepsItsPlaceThroughAnOutage(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, with(kinds, candidate), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		holder, holderRoute := onRoute(t, env)
		held := mustLock(t, k.rivalOf(t, holder, path))
		session := holder.Session().ID
		c, route := onRoute(t, env)
		first := lockLater(t.Context(), k.lock(t, c, path))
		awaitWait(t, route, path)
		next, nextRoute := onRoute(t, env)
		second := lockLater(t.Context(), k.lock(t, next, path))
		awaitWait(t, nextRoute, path)
		for range 5 {
			route.Cut()
			holderRoute.Cut()
			must.OK(t, c.AwaitConnected(t.Context()))
			must.OK(t, holder.AwaitConnected(t.Context()))
			if n := len(ephemerals(t, holder, path)); k.queue && n != 3 {
				t.Fatalf("%d contenders after an outage, want 3", n)
			}
		}
		if now := holder.Session().ID; now != session || held.Err() != nil {
			t.Errorf("session %#x, lease %v after outages; want %#x and nil", now, held.Err(), session)
		}
		route.Refuse()
		route.Cut()
		mustRelease(t, held) // while the first waiter can't see it
		route.Heal()
		if !k.fair {
			mustReleaseEach(t, first, second)
			return
		}
		lease := granted(t, first, "the lock for the first waiter")
		if len(second) > 0 {
			t.Fatalf("the second waiter was granted beside the first: %v", <-second)
		}
		mustHold(t, holder, lease)
		mustRelease(t, lease)
		mustRelease(t, granted(t, second, "the lock for the second waiter"))
		awaitEphemerals(t, holder, path, 0)
	}, oneOfEach())
}

// Lock waits for a session as long as its context and the client's policy say. A release that waits has released
// the lock when the session ends.
func TestLockWaitsForASessionByThePolicy(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kindsThat(kind.exclusive), func(t *testing.T, k kind, srv *zkserver.Server) {
		const path = "/interleaved/outage"
		held := mustLock(t, k.lock(t, virtualClient(t, srv), path))
		patient := virtualClient(t, srv, framework.WithRetry(retry.Forever(time.Second)))
		done := lockLater(t.Context(), k.lock(t, patient, path))
		await(time.Second)
		srv.Refuse()
		srv.Cut()
		released := later(func() error { return held.Release(t.Context()) })
		await(time.Minute) // the sessions end
		wantErr(t, "Release", must.Receive(t, released, "the release"), nil)
		mustWaitStill(t, "in an outage, with a policy to go on for ever", done)
		// As Curator's LeaderLatch.testNoServerAtStart: there was never a server.
		early := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial), framework.WithRetry(retry.Forever(time.Second))))(t)
		defer early.Close()
		first := lockLater(t.Context(), k.lock(t, early, path))
		await(time.Minute)
		mustWaitStill(t, "before the first session", first)
		srv.Accept()
		for range 2 { // in either order
			select {
			case r := <-done:
				done = nil
				mustRelease(t, must.Get(r.Lease, r.Err)(t))
			case r := <-first:
				first = nil
				mustRelease(t, must.Get(r.Lease, r.Err)(t))
			}
		}
	})
}

// AwaitConnected also reports a context that ends together with the connect timeout.
func TestAwaitConnected_reports_its_context(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			srv := virtualServer(t)
			c := virtualClient(t, srv)
			srv.Refuse()
			srv.Cut()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 2*connectTimeout)
			defer cancel()
			if err := c.AwaitConnected(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want an error that matches DeadlineExceeded", err)
			}
			srv.Accept()
		})
	}
}

// While the client can only read, nothing is granted. A holder and a waiter keep their places if
// the session survives.
func TestLockWhileReadOnly(t *testing.T) {
	t.Parallel()
	eachKind(t, kindsThat(kind.exclusive), func(t *testing.T, k kind) {
		synctest.Test(t, func(t *testing.T) { playReadOnly(t, k) })
	})
}

func playReadOnly(t *testing.T, k kind) {
	t.Helper()
	const path = "/readonly/lock"
	srv := virtualServer(t, zkserver.WithFrontends(3), zkserver.WithLeader(0),
		zkserver.WithSyncLimit(2), zkserver.WithReadOnlyMode(true))
	options := []framework.Option{framework.WithReadOnly(), framework.WithSessionTimeout(40 * time.Second)}
	holding, waiting := k.lock(t, virtualClient(t, srv, options...), path), virtualClient(t, srv, options...)
	lease := mustLock(t, holding)
	queued := lockLater(t.Context(), k.lock(t, waiting, path))
	await(time.Second)
	for _, f := range srv.Frontends()[:2] {
		f.Refuse()
		f.Isolate()
		f.Cut()
	}
	zktest.Eventually(t, time.Minute, "the state ReadOnly", func() bool {
		return waiting.State() == framework.ReadOnly
	})
	other := k.lock(t, waiting, "/readonly/other")
	began := time.Now()
	wantErr(t, "lock", errOf(other.Lock(t.Context())), framework.ErrReadOnly)
	if _, err := other.TryLock(t.Context()); !errors.Is(err, framework.ErrReadOnly) || errors.Is(err, lock.ErrHeld) {
		t.Errorf("try lock: %v, want %v", err, framework.ErrReadOnly)
	}
	if took := time.Since(began); took != 0 {
		t.Errorf("refused after %v, want at once", took)
	}
	await(2 * time.Second)
	for _, f := range srv.Frontends()[:2] {
		f.Accept()
		f.Heal()
	}
	zktest.Eventually(t, time.Minute, "the quorum", func() bool {
		return waiting.State() == framework.Connected
	})
	if err := lease.Err(); err != nil {
		t.Fatalf("the lease was lost: %v", err)
	}
	mustRelease(t, lease)
	mustRelease(t, granted(t, queued, "the waiter"))
}

// TestWipedServer_is_listed replaces the server by an empty one, as one that
// keeps its data in memory when it starts again: it counts its transactions from the
// beginning, so the number that a mutex remembers means another one there.
func TestWipedServer_is_listed(t *testing.T) {
	t.Parallel()
	for prior := range 4 {
		synctest.Test(t, func(t *testing.T) {
			const path = "/anew"
			var serves atomic.Pointer[zkserver.Server]
			before := virtualServer(t)
			serves.Store(before)
			c := newClient(t, before.Addr(), framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				return serves.Load().Dial(ctx, network, address)
			}))
			must.Get(c.Create(t.Context(), path, nil))(t)
			for range prior {
				must.Get(c.Set(t.Context(), path, nil, framework.AnyVersion))(t)
			}
			m := newMutex(t, c, path)
			mustRelease(t, mustLock(t, m))

			renewed := make(chan struct{})
			defer c.OnState(func(change framework.StateChange) {
				if change.From == framework.Lost && change.To == framework.Connected {
					close(renewed)
				}
			})()
			await(time.Second) // a server numbers its sessions from the time of its start on
			after := virtualServer(t)
			serves.Store(after)
			before.Cut()
			<-renewed
			other := virtualClient(t, after)
			held := mustLock(t, newMutex(t, other, path))
			done := lockLater(t.Context(), m)
			synctest.Wait()
			mustWaitStill(t, fmt.Sprintf("beside a holder, %d writes after the creation", prior), done)
			mustRelease(t, held)
			mustRelease(t, granted(t, done, "the grant"))
		})
	}
}

// As Curator's testAttemptLockFailedException: what failed first is what Lock returns, and
// the attempt's znode goes.
func TestCuratorErrorOfTheAttemptIsReturned(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/curator/failed"
		c, route := onRoute(t, env, framework.WithRetry(retry.Never()))
		lost := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.DropReply})
		ctx, cancel := context.WithTimeout(t.Context(), generous)
		defer cancel()
		wantErr(t, "Lock", errOf(newMutex(t, c, path).Lock(ctx)), framework.ErrUnknownOutcome)
		must.Receive(t, lost.Hit(), "the loss of the reply")
		observer := env.Client(t)
		awaitContenders(t, observer, path, 0)
		mustRelease(t, mustLock(t, newMutex(t, observer, path)))
	})
}
