package lock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/worlds"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// TestOwnNodeIsFoundAgain loses the reply to the create: the session lives, so
// the node that was created is the one that is granted.
func TestOwnNodeIsFoundAgain(t *testing.T) {
	t.Parallel()
	const path = "/own/found"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c, way := onWay(t, w)
		lost := way.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.DropReply})
		lease := mustLock(t, newMutex(t, c, path))
		if lost.Hits() != 1 {
			t.Fatal("the reply was not lost")
		}
		if n := len(contenders(t, c, path)); n != 1 {
			t.Errorf("%d contenders, want 1", n)
		}
		fence := lease.Fence()
		if st, _, err := c.Exists(t.Context(), lease.Node()); err != nil || st.Czxid != fence {
			t.Errorf("fence %d, want the node's czxid %d (%v)", fence, st.Czxid, err)
		}
		mustRelease(t, lease)
	})
}

// TestOwnSessionOnly loses the reply to the create, then ends the session before
// the client is back: whatever of the old session still stands, or was
// listed, must not be granted (CURATOR-604).
func TestOwnSessionOnly(t *testing.T) {
	t.Parallel()
	const path = "/own/session"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c, way := onWay(t, w)
		before := c.Session().ID
		lost := way.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.HoldReply})
		done := lockLater(t.Context(), newMutex(t, c, path))
		receive(t, lost.Hit(), "the create's reply")
		way.Expire(t)
		got := receive(t, done, "the lock in the next session")
		if got.err != nil {
			t.Fatal(got.err)
		}
		now := c.Session().ID
		if now == before {
			t.Fatal("the session was not replaced")
		}
		if st, ok, err := c.Exists(t.Context(), got.lease.Node()); err != nil || !ok || st.EphemeralOwner != now {
			t.Errorf("granted node belongs to session %#x (%v, %v), want %#x", st.EphemeralOwner, ok, err, now)
		}
		if n := len(contenders(t, c, path)); n != 1 {
			t.Errorf("%d contenders, want 1", n)
		}
		mustRelease(t, got.lease)
	})
}

// TestOldSessionsNodeOfTheSameAttemptIsNotTaken leaves a node with the attempt's
// name in the directory that belongs to another session, as a lagging server
// would list the node of the client's previous session.
func TestOldSessionsNodeOfTheSameAttemptIsNotTaken(t *testing.T) {
	t.Parallel()
	const path = "/own/old"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c, way := onWay(t, w)
		other := w.Client(t)
		cut := way.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.CutBefore, Skip: 0})
		hang := way.Rules().Add(fault.Rule{Op: fault.Sync, Path: path, Action: fault.HoldRequest})
		done := lockLater(t.Context(), newMutex(t, c, path))
		receive(t, cut.Hit(), "the create")
		receive(t, hang.Hit(), "the search for its node")
		name := createdName(t, way.Proxy)
		if _, err := other.Create(t.Context(), name+"0000000000", nil, framework.Ephemeral(), framework.WithParents()); err != nil {
			t.Fatal(err)
		}
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
		if err := other.Delete(t.Context(), name+"0000000000"); err != nil {
			t.Fatal(err)
		}
		got := receive(t, done, "the lock once the other node is gone")
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
	if err := zktest.KillSession(t.Context(), server.Addr(), session.ID, session.Password); err != nil {
		t.Fatal(err)
	}
	proxy.Heal()
}

func TestExpiryEndsALeaseAndNotTheLock(t *testing.T) {
	t.Parallel()
	const path = "/own/expiry"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c, way := onWay(t, w)
		m := newMutex(t, c, path)
		lease := mustLock(t, m)
		work, cancel := lease.Context(t.Context())
		defer cancel()
		way.Expire(t)
		receive(t, lease.Lost(), "the loss of the lease")
		var lostErr *lock.LostError
		if err := lease.Err(); !errors.As(err, &lostErr) || !errors.Is(err, lock.ErrLost) || !errors.Is(err, framework.ErrSessionEnded) {
			t.Errorf("lease: %v, want a LostError that wraps ErrSessionEnded", err)
		}
		receive(t, work.Done(), "the end of the lease's context")
		if n := m.Held(t.Context()); n != 0 {
			t.Errorf("held %d times after the loss, want 0", n)
		}
		again := mustLock(t, m)
		if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release of the lost lease: %v, want ErrLost", err)
		}
		if err := again.Err(); err != nil {
			t.Errorf("new lease: %v, want nil: it is independent of the lost one", err)
		}
		mustRelease(t, again)
	})
}

func TestWaiterQueuesAgainInTheNextSession(t *testing.T) {
	t.Parallel()
	const path = "/own/waiter"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		holder := w.Client(t)
		held := mustLock(t, newMutex(t, holder, path))
		c, way := onWay(t, w)
		done := lockLater(t.Context(), newMutex(t, c, path))
		awaitContenders(t, holder, path, 2)
		way.Expire(t)
		awaitContenders(t, holder, path, 2)
		mustRelease(t, held)
		got := receive(t, done, "the lock in the next session")
		if got.err != nil {
			t.Fatal(got.err)
		}
		mustRelease(t, got.lease)
	})
}

// TestWaiterKeepsItsPlaceThroughAnOutage cuts the connections of two waiters
// (CURATOR zk-ruby 51, kazoo 282: it must neither queue twice nor hang).
func TestWaiterKeepsItsPlaceThroughAnOutage(t *testing.T) {
	t.Parallel()
	const path = "/own/outage"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		holder := w.Client(t)
		held := mustLock(t, newMutex(t, holder, path))
		first, way := onWay(t, w)
		firstDone := lockLater(t.Context(), newMutex(t, first, path))
		awaitContenders(t, holder, path, 2)
		second := w.Client(t)
		secondDone := lockLater(t.Context(), newMutex(t, second, path))
		awaitContenders(t, holder, path, 3)
		for range 5 {
			way.Cut()
			if err := first.AwaitConnected(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(contenders(t, holder, path)); n != 3 {
				t.Fatalf("%d contenders after an outage, want 3", n)
			}
		}
		way.Refuse()
		way.Cut()
		mustRelease(t, held) // while the first waiter can't see it
		way.Heal()
		got := receive(t, firstDone, "the lock for who came first")
		if got.err != nil {
			t.Fatal(got.err)
		}
		select {
		case r := <-secondDone:
			t.Fatalf("the second was granted beside the first: %v", r)
		default:
		}
		mustRelease(t, got.lease)
		got = receive(t, secondDone, "the lock for who came second")
		if got.err != nil {
			t.Fatal(got.err)
		}
		mustRelease(t, got.lease)
	})
}
