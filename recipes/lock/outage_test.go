package lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestALongWaitIsLogged: after two seconds a waiter logs which contender it waits for, and says if that
// is its own client's or its own process's. A waiter that is granted soon logs nothing.
func TestALongWaitIsLogged(t *testing.T) {
	t.Parallel()
	const path = "/locks/report"
	for name, tt := range map[string]struct {
		hold func(t *testing.T, own, other *framework.Client) // takes the lock
		want string
		text string // of the error of the wait
	}{
		"another process": {func(t *testing.T, _, other *framework.Client) {
			held := lease.Metadata{Version: lease.MetadataVersion, Host: "batch-3", PID: 811, Owner: "nightly"}.Encode()
			must.Get(other.Create(t.Context(), path+"/_c_1f3b2c4d-0000-4000-8000-000000000000-lock-", held,
				framework.Ephemeral(), framework.Sequential(), framework.WithParents()))(t)
		}, "still waiting for the lock", "process 811 on batch-3)"},
		"a container with this host and pid": {func(t *testing.T, _, other *framework.Client) {
			host := must.Get(os.Hostname())(t)
			held := lease.Metadata{Version: lease.MetadataVersion, Host: host, PID: os.Getpid(), Process: "0123456789abcdef"}.Encode()
			must.Get(other.Create(t.Context(), path+"/_c_1f3b2c4d-0000-4000-8000-000000000000-lock-", held,
				framework.Ephemeral(), framework.Sequential(), framework.WithParents()))(t)
		}, "still waiting for the lock", fmt.Sprintf("process %d on %s)", os.Getpid(), must.Get(os.Hostname())(t))},
		"another owner of the client": {func(t *testing.T, own, _ *framework.Client) {
			must.Get(newMutex(t, own, path).Lock(asOwner(t, "first")))(t)
		}, "still waiting for the lock, which another owner of this client has or waits for", ", which is this one)"},
		"another session of the process": {func(t *testing.T, _, other *framework.Client) {
			mustLock(t, newMutex(t, other, path))
		}, "still waiting for the lock, which another session of this process has or waits for", ", which is this one)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.InfoLevel)
				srv := virtualServer(t)
				own, other := virtualClient(t, srv, framework.WithLogger(zap.New(core))), virtualClient(t, srv)
				tt.hold(t, own, other)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				began := time.Now()
				_, err := newMutex(t, own, path).Lock(ctx)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("error %v, want one that says %q", err, tt.text)
				}
				var after []time.Duration
				for _, e := range logs.FilterLoggerName("zk.lock").All() {
					after = append(after, e.Time.Sub(began).Round(time.Second))
					if e.Message != tt.want || e.Level != zapcore.InfoLevel {
						t.Errorf("%v: %s, want %s", e.Level, e.Message, tt.want)
					}
					if e.ContextMap()["zookeeper.lock.path"] != path || !strings.HasPrefix(e.ContextMap()["contender"].(string), path+"/_c_") {
						t.Errorf("fields %v", e.ContextMap())
					}
					if owner, has := e.ContextMap()["owner"]; has && owner == "" {
						t.Errorf("a field of an owner without a name: %v", e.ContextMap())
					}
				}
				if want := []time.Duration{2 * time.Second, 6 * time.Second, 14 * time.Second, 30 * time.Second}; len(after) < 3 || len(after) > 4 || after[0] != want[0] || after[1] != want[1] || after[2] != want[2] {
					t.Errorf("lines after %v, want %v, the last one or not", after, want)
				}
			})
		})
	}
}

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
	zktest.Eventually(t, generous, "it waits", func() bool { return waits(route, path) })
}

// TestWaiterKeepsItsPlaceThroughAnOutage cuts the connections of the holder, which keeps its lease, and of a
// waiter, once while the lock is released (zk-ruby 51, kazoo 282: it must neither queue twice nor hang).
func TestWaiterKeepsItsPlaceThroughAnOutage(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
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

// The pause of a retry policy is for servers that are away. One that is back is asked
// at once: by operations, by waiters, and by deletions in the background.
func TestLongPausesEndWithTheConnectionsReturn(t *testing.T) {
	t.Parallel()
	slow := framework.WithRetry(retry.Forever(10 * time.Minute))
	t.Run("a read", func(t *testing.T) {
		inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
			c := virtualClient(t, srv, slow)
			srv.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.CutBefore})
			began := time.Now()
			must.Get2(c.Exists(t.Context(), "/"))(t)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v, want less than 5 s: the connection was away for a moment", took)
			}
		})
	})
	t.Run("a lock that has become free", func(t *testing.T) {
		inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
			const path = "/interleaved/slow"
			held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
			c := virtualClient(t, srv, slow)
			srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: fault.GetData, Path: path + "/*", Action: fault.CutBefore})
			done := lockLater(t.Context(), newMutex(t, c, path))
			await(time.Second)
			mustRelease(t, held)
			began := time.Now()
			got := <-done
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("granted %v after the release, want within the session timeout of 10 s", took)
			}
			mustRelease(t, got.Lease)
		})
	})
	t.Run("a ghost", func(t *testing.T) {
		inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
			const path = "/interleaved/slowghost"
			c := virtualClient(t, srv, slow)
			lease := mustLock(t, newMutex(t, c, path))
			srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := lease.Release(ctx); err == nil {
				return // it has been retried within a second
			}
			srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
			await(time.Minute)
			if left := znodesBelow(srv, path); len(left) != 0 {
				t.Errorf("a minute after the release, with a server at hand: %q", left)
			}
		})
	})
}

// Lock waits for a session as long as its context and the client's policy say.
func TestLockWaitsForASessionByThePolicy(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/interleaved/outage"
		held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		_ = held
		waiting := newMutex(t, virtualClient(t, srv, framework.WithRetry(retry.Forever(time.Second))), path)
		done := lockLater(t.Context(), waiting)
		synctest.Wait()
		srv.Refuse()
		srv.Cut()
		await(time.Minute) // the sessions end
		mustWaitStill(t, "in an outage, with a policy to go on for ever", done)
		srv.Accept()
		mustRelease(t, granted(t, done, "the lock"))
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
