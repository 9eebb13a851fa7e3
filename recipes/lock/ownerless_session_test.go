package lock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/worlds"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// TestOwnerlessOwnSessionOnly loses the reply to the first create, then ends
// the session before the client is back.
func TestOwnerlessOwnSessionOnly(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/session", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		c, proxy := onWay(t, w)
		mustRelease(t, mustLock(t, kind.lock(t, c, path)))
		before := c.Session().ID
		lost := proxy.Rules().Add(fault.Rule{Op: kind.create, Path: path + kind.requests, Action: fault.HoldReply})
		done := lockLater(t.Context(), kind.lock(t, c, path))
		receive(t, lost.Hit(), "the create's reply")
		proxy.Expire(t)
		got := receive(t, done, "the lock in the next session")
		if got.err != nil {
			t.Fatal(got.err)
		}
		now := c.Session().ID
		st, ok, err := c.Exists(t.Context(), got.lease.Node())
		if now == before || err != nil || !ok || st.EphemeralOwner != now {
			t.Errorf("granted znode belongs to session %#x (%v, %v), want %#x, other than %#x", st.EphemeralOwner, ok, err, now, before)
		}
		mustRelease(t, got.lease)
	})
}

func TestOwnerlessExpiry(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/expiry", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		c, proxy := onWay(t, w)
		l := kind.lock(t, c, path)
		lease := mustLock(t, l)
		work, cancel := lease.Context(t.Context())
		defer cancel()
		waiting := lockLater(t.Context(), l) // in the same client
		proxy.Expire(t)
		receive(t, lease.Lost(), "the loss of the lease")
		if err := lease.Err(); !errors.Is(err, lock.ErrLost) || !errors.Is(err, framework.ErrSessionEnded) {
			t.Errorf("lease: %v, want ErrLost and ErrSessionEnded", err)
		}
		receive(t, work.Done(), "the end of the lease's context")
		got := receive(t, waiting, "the lock in the next session")
		if got.err != nil {
			t.Fatal(got.err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release of the lost lease: %v, want ErrLost", err)
		}
		mustHold(t, c, got.lease)
		mustRelease(t, got.lease)
	})
}

func TestOwnerlessWaiterGoesOnInTheNextSession(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/waiter", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		holder := w.Client(t)
		held := mustLock(t, kind.lock(t, holder, path))
		c, proxy := onWay(t, w)
		done := lockLater(t.Context(), kind.lock(t, c, path))
		zktest.Eventually(t, generous, "it waits", func() bool { return waits(proxy, path) })
		proxy.ResetRequests()
		proxy.Expire(t)
		zktest.Eventually(t, generous, "it waits again", func() bool { return waits(proxy, path) })
		mustRelease(t, held)
		got := receive(t, done, "the lock in the next session")
		if got.err != nil {
			t.Fatal(got.err)
		}
		mustHold(t, holder, got.lease)
		mustRelease(t, got.lease)
	})
}

// waits reports whether a client has begun to watch the lock's znodes.
func waits(proxy *worlds.Way, path string) bool {
	for _, rq := range proxy.Requests() {
		if rq.Op == fault.GetData && strings.HasPrefix(rq.Path, path) {
			return true
		}
	}
	return false
}

// TestOwnerlessWaiterThroughAnOutage cuts a waiter's connection, several times,
// and once while the lock is released.
func TestOwnerlessWaiterThroughAnOutage(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/outage", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		holder := w.Client(t)
		held := mustLock(t, kind.lock(t, holder, path))
		c, proxy := onWay(t, w)
		done := lockLater(t.Context(), kind.lock(t, c, path))
		zktest.Eventually(t, generous, "it waits", func() bool { return waits(proxy, path) })
		for range 3 {
			proxy.Cut()
			if err := c.AwaitConnected(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		proxy.Refuse()
		proxy.Cut()
		mustRelease(t, held)
		proxy.Heal()
		got := receive(t, done, "the lock")
		if got.err != nil {
			t.Fatal(got.err)
		}
		mustHold(t, holder, got.lease)
		mustRelease(t, got.lease)
		awaitEphemerals(t, holder, path, 0)
	})
}

func TestOwnerlessLossBeforeSuccession(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			var opts []worlds.Option
			if i > 0 {
				opts = append(opts, worlds.Only("one moment takes seconds on a real server", worlds.Embedded, worlds.EmbeddedEnsemble))
			}
			dir := fmt.Sprint("/ownerless-succession/", i)
			forOwnerless(t, dir, func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
				next := w.Client(t)
				holder, way := onWay(t, w, framework.WithSessionTimeout(sessionAtStake))
				lease := mustLock(t, kind.lock(t, holder, path))
				observed := make(chan time.Time, 1)
				go func() {
					<-lease.Lost()
					observed <- time.Now()
				}()
				done := lockLater(t.Context(), kind.lock(t, next, path))
				phase := time.NewTimer(time.Duration(i) * 100 * time.Millisecond)
				<-phase.C
				way.Blackhole(zkproxy.Both)
				lost := receive(t, observed, "the loss of the lease")
				got := receive(t, done, "the grant to the next")
				if got.err != nil {
					t.Fatal(got.err)
				}
				if !lost.Before(got.at) {
					t.Errorf("lost %v after the next was granted", lost.Sub(got.at))
				}
				mustRelease(t, got.lease)
			}, opts...)
		})
	}
}

func TestOwnerlessOnSuspend(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/suspend", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		c, proxy := onWay(t, w)
		lease := mustLock(t, kind.lock(t, c, path, lock.WithLossPolicy(lock.OnSuspend)))
		next := lockLater(t.Context(), kind.lock(t, w.Client(t), path))
		proxy.Cut()
		receive(t, lease.Lost(), "the loss by suspension")
		if err := lease.Err(); !errors.Is(err, lock.ErrSuspended) {
			t.Errorf("lease: %v, want ErrSuspended", err)
		}
		got := receive(t, next, "the grant to the next")
		if got.err != nil {
			t.Fatal(got.err)
		}
		zktest.Eventually(t, generous, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
		mustHold(t, c, got.lease)
		mustRelease(t, got.lease)
	})
}

func TestOwnerlessOperatorDeletesTheHolder(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/operator", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		operator := w.Client(t)
		l := kind.lock(t, w.Client(t), path)
		lease := mustLock(t, l)
		if err := operator.Delete(t.Context(), lease.Node()); err != nil {
			t.Fatal(err)
		}
		receive(t, lease.Lost(), "the loss")
		if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("release: %v, want ErrNodeDeleted", err)
		}
		again := mustLock(t, l)
		if err := operator.Delete(t.Context(), again.Node()); err != nil {
			t.Fatal(err)
		}
		if err := again.Release(t.Context()); !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("release before the loss was noticed: %v, want ErrNodeDeleted", err)
		}
	})
}

// TestOwnerlessEndsWithTheClient closes a client that has the lock, with others
// of its calls waiting.
func TestOwnerlessEndsWithTheClient(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/closed", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		c := w.Client(t)
		l := kind.lock(t, c, path)
		lease := mustLock(t, l)
		waiting := lockLater(t.Context(), l)
		if err := c.Close(); err != nil { // again at the end of the test
			t.Error(err)
		}
		if got := receive(t, waiting, "the end of the wait"); !errors.Is(got.err, framework.ErrClosed) {
			t.Errorf("waiting Lock: %v, %v; want ErrClosed", got.lease, got.err)
		}
		receive(t, lease.Lost(), "the loss")
		if _, err := l.TryLock(t.Context()); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("TryLock: %v, want ErrClosed", err)
		}
		mustRelease(t, mustLock(t, kind.lock(t, w.Client(t), path)))
	})
}
