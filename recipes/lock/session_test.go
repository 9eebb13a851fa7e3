package lock_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// TestOwnSessionOnly loses the reply to the create, then ends the session before the client is
// back. No znode of the old session that still exists, or was listed, may be granted (CURATOR-604).
func TestOwnSessionOnly(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c, route := onRoute(t, env)
		l := k.lock(t, c, path)
		mustRelease(t, mustLock(t, l))
		before := c.Session().ID
		lost := route.Rules().Add(fault.Rule{Op: k.create, Path: path + "/**", Action: fault.HoldReply})
		done := lockLater(t.Context(), l)
		must.Receive(t, lost.Hit(), "the create's reply")
		route.Expire(t)
		lease := granted(t, done, "the lock in the next session")
		now := c.Session().ID
		st, ok, err := c.Exists(t.Context(), firstOf(lease).Node())
		if now == before || err != nil || !ok || st.EphemeralOwner != now {
			t.Errorf("the znode belongs to session %#x (%v, %v), want %#x, other than %#x", st.EphemeralOwner, ok, err, now, before)
		}
		mustRelease(t, lease)
		awaitEphemerals(t, env.Client(t), path, 0)
	}, oneOfEach())
}

// TestOldSessionsNodeOfTheSameAttemptIsNotTaken leaves a node with the attempt's name in the
// directory. It belongs to another session, as a lagging server would list the node of the
// client's previous session.
func TestOldSessionsNodeOfTheSameAttemptIsNotTaken(t *testing.T) {
	t.Parallel()
	const path = "/own/old"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c, route := onRoute(t, env)
		other := env.Client(t)
		cut := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.CutBefore, Skip: 0})
		hang := route.Rules().Add(fault.Rule{Op: fault.Sync, Path: path, Action: fault.HoldRequest})
		done := lockLater(t.Context(), newMutex(t, c, path))
		must.Receive(t, cut.Hit(), "the create")
		must.Receive(t, hang.Hit(), "the search for its node")
		name := createdName(t, route.Proxy)
		must.Get(other.Create(t.Context(), name+"0000000000", nil, framework.Ephemeral(), framework.WithParents()))(t)
		hang.Release()
		awaitContenders(t, other, path, 2)
		if names := contenders(t, other, path); !strings.HasPrefix(names[0], name[len(path)+1:]) {
			t.Fatalf("contenders %v, want two of the attempt's name", names)
		}
		select {
		case got := <-done:
			t.Fatalf("granted %v (%v) behind a foreign node", got.lease, got.err)
		default:
		}
		must.OK(t, other.Delete(t.Context(), name+"0000000000"))
		got := must.Receive(t, done, "the lock once the other node is gone")
		if got.err != nil {
			t.Fatal(got.err)
		}
		if got.lease.Node() == name+"0000000000" {
			t.Error("granted on another session's node")
		}
		mustRelease(t, got.lease)
	})
}

// createdName returns the path of the latest create that was asked for.
func createdName(t testing.TB, proxy *zkproxy.Proxy) string {
	t.Helper()
	name := ""
	for _, rq := range proxy.Requests() {
		if rq.Op == fault.Create && strings.HasSuffix(rq.Path, "-lock-") {
			name = rq.Path
		}
	}
	if name == "" {
		t.Fatal("no create was seen")
	}
	return name
}

// sessionOf returns the session with its password, as the proxy has seen it.
func sessionOf(t testing.TB, proxy *zkproxy.Proxy, id int64) zkproxy.Session {
	t.Helper()
	for _, s := range proxy.Sessions() {
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("the proxy does not carry session %#x", id)
	panic("unreachable")
}

// expire ends c's session at the server while c can't reconnect.
func expire(t testing.TB, server *zktest.Server, proxy *zkproxy.Proxy, c *framework.Client) {
	t.Helper()
	session := sessionOf(t, proxy, c.Session().ID)
	proxy.Refuse()
	proxy.Cut()
	must.OK(t, zktest.KillSession(t.Context(), server.Addr(), session.ID, session.Password))
	proxy.Heal()
}

func TestWaiterContinuesInTheNextSession(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		holder := env.Client(t)
		held := mustLock(t, k.rivalOf(t, holder, path))
		c, route := onRoute(t, env)
		done := lockLater(t.Context(), k.lock(t, c, path))
		awaitWait(t, route, path)
		route.ResetRequests()
		route.Expire(t)
		awaitWait(t, route, path)
		mustRelease(t, held)
		lease := granted(t, done, "the lock in the next session")
		mustHold(t, holder, lease)
		mustRelease(t, lease)
		awaitEphemerals(t, holder, path, 0)
	}, oneOfEach())
}

// awaitWait waits until a client on the route has begun to watch the lock's znodes.
func awaitWait(t testing.TB, route *zkenv.Route, path string) {
	t.Helper()
	zktest.Eventually(t, generous, "it waits", func() bool { return waits(route, path) })
}

// TestWaiterKeepsItsPlaceThroughAnOutage cuts the connections of a waiter, once while the lock is
// released (zk-ruby 51, kazoo 282: it must neither queue twice nor hang).
func TestWaiterKeepsItsPlaceThroughAnOutage(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kinds, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		holder := env.Client(t)
		held := mustLock(t, k.rivalOf(t, holder, path))
		c, route := onRoute(t, env)
		first := lockLater(t.Context(), k.lock(t, c, path))
		awaitWait(t, route, path)
		next, nextRoute := onRoute(t, env)
		second := lockLater(t.Context(), k.lock(t, next, path))
		awaitWait(t, nextRoute, path)
		for range 5 {
			route.Cut()
			must.OK(t, c.AwaitConnected(t.Context()))
			if n := len(ephemerals(t, holder, path)); k.queue && n != 3 {
				t.Fatalf("%d contenders after an outage, want 3", n)
			}
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
