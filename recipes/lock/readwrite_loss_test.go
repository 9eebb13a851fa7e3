package lock_test

import (
	"errors"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zktest"
)

func TestBothSidesAreLostWithTheSession(t *testing.T) {
	t.Parallel()
	const path = "/rwloss/both"
	server := zktest.Shared(t)
	c, proxy := behindProxy(t, server)
	rw := newReadWrite(t, c, path)
	one := asOwner(t, "one")
	writing, reading := mustLockAs(one, t, rw.Write()), mustLockAs(one, t, rw.Read())
	expire(t, server, proxy, c)
	for side, lease := range map[*lock.Side]*lock.Lease{rw.Write(): writing, rw.Read(): reading} {
		must.Receive(t, lease.Lost(), "the loss of the lease")
		if err := lease.Err(); !errors.Is(err, lock.ErrLost) || !errors.Is(err, framework.ErrSessionEnded) {
			t.Errorf("lease: %v, want an error that matches ErrLost and ErrSessionEnded", err)
		}
		if n := side.Held(one); n != 0 {
			t.Errorf("held %d times after the loss, want 0", n)
		}
	}
	// A later lease has nothing to do with the lost one.
	reading2 := mustLockAs(one, t, rw.Read())
	if st, ok, err := c.Exists(t.Context(), reading2.Node()); err != nil || !ok || st.EphemeralOwner != c.Session().ID {
		t.Errorf("node of session %#x (%v, %v), want %#x", st.EphemeralOwner, ok, err, c.Session().ID)
	}
	if _, err := rw.Write().TryLock(one); !errors.Is(err, lock.ErrUpgrade) {
		t.Errorf("TryLock of the write side: %v, want ErrUpgrade", err)
	}
	mustRelease(t, reading2)
	for _, lease := range []*lock.Lease{writing, reading} {
		if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release of a lost lease: %v, want ErrLost", err)
		}
	}
}

// TestTheSidesAreLostOneByOneToAnOperator: CURATOR-171, where no holder noticed. A read node holds
// by itself: it was created while the write node existed.
func TestTheSidesAreLostOneByOneToAnOperator(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	for _, lostSide := range []string{"write", "read"} {
		t.Run(lostSide, func(t *testing.T) {
			t.Parallel()
			path := "/rwloss/operator-" + lostSide
			c, operator := newClient(t, server.Addr()), newClient(t, server.Addr())
			rw := newReadWrite(t, c, path)
			one := asOwner(t, "one")
			lost, kept := mustLockAs(one, t, rw.Write()), mustLockAs(one, t, rw.Read())
			if lostSide == "read" {
				lost, kept = kept, lost
			}
			writer := queueUp(asOwner(t, "two"), t, newReadWrite(t, operator, path).Write(), operator, path, 3)
			deleteNode(t, operator, lost.Node())
			must.Receive(t, lost.Lost(), "the loss of the lease")
			if err := lost.Err(); !errors.Is(err, lock.ErrNodeDeleted) {
				t.Errorf("lost lease: %v, want an error that matches ErrNodeDeleted", err)
			}
			mustWait(t, "the writer behind the other node", writer)
			if err := kept.Err(); err != nil {
				t.Errorf("the other lease: %v, want nil", err)
			}
			mustRelease(t, kept)
			mustRelease(t, granted(t, writer, "the writer behind"))
		})
	}
}

// TestADowngradeNeedsTheWriteNode has the write node deleted without its owner's
// knowledge, and another writer granted: the owner's read node would stand ahead
// of that one.
func TestADowngradeNeedsTheWriteNode(t *testing.T) {
	t.Parallel()
	const path = "/rwloss/unnoticed"
	server := zktest.Shared(t)
	operator := newClient(t, server.Addr())
	c, proxy := behindProxy(t, server)
	rw := newReadWrite(t, c, path)
	one := asOwner(t, "one")
	unnoticed := proxy.Rules().Add(fault.Rule{Op: fault.Event, Path: path + "/*", Action: fault.DropEvent})
	writing := mustLockAs(one, t, rw.Write())
	zktest.Eventually(t, generous, "the watch on the write node", func() bool { return proxy.Count(fault.GetData) > 0 })
	writer := queueUp(asOwner(t, "two"), t, newReadWrite(t, operator, path).Write(), operator, path, 2)
	deleteNode(t, operator, writing.Node())
	lease := granted(t, writer, "the writer behind")
	must.Receive(t, unnoticed.Hit(), "the lost event")
	if err := writing.Err(); err != nil {
		t.Fatalf("write lease: %v; it was to notice nothing", err)
	}

	mustBeHeld(one, t, rw.Read())
	awaitContenders(t, operator, path, 1)
	reader := queueUp(one, t, rw.Read(), operator, path, 2)
	mustWait(t, "the reader beside a write node that is gone", reader)
	mustRelease(t, lease)
	reading := granted(t, reader, "the reader")
	if digits(reading.Node()) == digits(writing.Node()) {
		t.Errorf("node %s has the number of the one that was deleted", reading.Node())
	}
	mustRelease(t, reading)
	if err := writing.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of the write lease: %v, want ErrLost", err)
	}
}

// TestADowngradeInTheNextSessionQueuesAsOthersDo asks for the read side while
// there is no connection; the session that has the write side ends before there is.
func TestADowngradeInTheNextSessionQueuesAsOthersDo(t *testing.T) {
	t.Parallel()
	const path = "/rwloss/next-session"
	server := zktest.Shared(t)
	createNode(t, newClient(t, server.Addr()), path+"/foreign") // the directory stays
	c, proxy := behindProxy(t, server)
	rw := newReadWrite(t, c, path)
	one := asOwner(t, "one")
	writing := mustLockAs(one, t, rw.Write())
	session := sessionOf(t, proxy, c.Session().ID)
	proxy.Refuse()
	proxy.Cut()
	zktest.Eventually(t, generous, "the loss of the connection", func() bool { return c.State() == framework.Suspended })
	reader := lockLater(one, rw.Read())
	mustWait(t, "the reader without a connection", reader)
	must.OK(t, zktest.KillSession(t.Context(), server.Addr(), session.ID, session.Password))
	proxy.ResetRequests()
	proxy.Heal()
	reading := granted(t, reader, "the read side in the next session")
	must.Receive(t, writing.Lost(), "the loss of the write lease")
	if n := proxy.Count(fault.Create); n != 1 {
		t.Errorf("%d creates, want 1: the number of a lost node is of no use", n)
	}
	mustRelease(t, reading)
}
