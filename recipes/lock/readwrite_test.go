package lock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zktest"
)

// TestTheSidesOfOneOwnerAreUnlockedByThemselves, in any order.
func TestTheSidesOfOneOwnerAreUnlockedByThemselves(t *testing.T) {
	t.Parallel()
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, "/rwowner/sides")
	owner := asOwner(t, "owner")
	for _, order := range [][2]*lock.Side{{rw.Read(), rw.Write()}, {rw.Write(), rw.Read()}} {
		mustLockAs(owner, t, rw.Write())
		mustLockAs(owner, t, rw.Read())
		for _, side := range order {
			wantErr(t, "unlock", side.Unlock(owner), nil)
			if n := side.Held(owner); n != 0 {
				t.Errorf("held %d times after its Unlock, want 0", n)
			}
			wantErr(t, "second Unlock", side.Unlock(owner), lock.ErrNotOwner)
		}
	}
}

// TestWhoDiesInTheQueueIsPassed: Redisson issues 2278 and 3730, where the queue entries of dead
// clients blocked all others.
func TestWhoDiesInTheQueueIsPassed(t *testing.T) {
	t.Parallel()
	const path = "/rwowner/dead"
	server := zktest.Shared(t)
	c := newClient(t, server.Addr())
	rw := newReadWrite(t, c, path)
	held := mustLockAs(asOwner(t, "reader"), t, rw.Read())
	dying, proxy := behindProxy(t, server)
	dead := queueUp(asOwner(t, "dead"), t, newReadWrite(t, dying, path).Write(), c, path, 2)
	reader := queueUp(asOwner(t, "next"), t, rw.Read(), c, path, 3)
	mustWait(t, "everybody behind the reader", dead, reader)
	session := sessionOf(t, proxy, dying.Session().ID)
	proxy.Refuse()
	proxy.Cut()
	must.OK(t, zktest.KillSession(t.Context(), server.Addr(), session.ID, session.Password))
	mustRelease(t, granted(t, reader, "the reader behind the dead"))
	mustRelease(t, held)
	wantErr(t, "close", dying.Close(), framework.ErrUnknownOutcome) // no server can end the session
	wantErr(t, "Lock", failed(t, dead, "the end of the dead one's Lock"), framework.ErrClosed)
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
			wantErr(t, "lost lease", lost.Err(), lock.ErrNodeDeleted)
			mustWait(t, "the writer behind the other node", writer)
			wantErr(t, "the other lease", kept.Err(), nil)
			mustRelease(t, kept)
			mustRelease(t, granted(t, writer, "the writer behind"))
		})
	}
}

func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	for name, hold := range map[string]func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease{
		"whoever has the read side": func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease {
			return mustLockAs(ctx, t, rw.Read())
		},
		"who had the write side and released it": func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease {
			writing := mustLockAs(ctx, t, rw.Write())
			reading := mustLockAs(ctx, t, rw.Read())
			mustRelease(t, writing)
			return reading
		},
		"an owner whose other goroutine has the read side": func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease {
			return granted(t, lockLater(ctx, rw.Read()), "the read side")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "/upgrade/" + strings.ReplaceAll(name, " ", "-")
			c, proxy := behindProxy(t, server)
			rw := newReadWrite(t, c, path)
			one := asOwner(t, "one")
			reading := hold(one, t, rw)
			proxy.ResetRequests()
			for try, attempt := range map[string]func(context.Context) (*lock.Lease, error){
				"lock": rw.Write().Lock, "try lock": rw.Write().TryLock, "lock of another value": newReadWrite(t, c, path).Write().Lock,
			} {
				wantErr(t, try, errOf(attempt(one)), lock.ErrUpgrade)
			}
			if n := proxy.Count(fault.Create, fault.GetChildren, fault.GetData); n != 0 {
				t.Errorf("%d requests for what can't be had, want 0", n)
			}
			if _, err := rw.Write().Lock(one); err == nil || err.Error() != fmt.Sprintf(
				"lock: lock write side of %s: caller has the read side, which can't be upgraded: release it first", path) {
				t.Errorf("error %q", err)
			}
			mustBeHeld(asOwner(t, "another"), t, rw.Write())
			mustRelease(t, reading)
			mustRelease(t, mustLockAs(one, t, rw.Write()))
		})
	}
}

func TestUpgradeIsRefused_to_a_reader(t *testing.T) {
	t.Parallel()
	const path = "/upgrade/two"
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, path)
	held := mustLockAs(asOwner(t, "writer"), t, rw.Write())
	one := asOwner(t, "one")
	reader := queueUp(one, t, rw.Read(), c, path, 2)
	writer := lockLater(one, rw.Write())
	mustWait(t, "both goroutines", reader, writer)
	mustRelease(t, held)
	lease := granted(t, reader, "the read side")
	wantErr(t, "Lock", failed(t, writer, "the refusal"), lock.ErrUpgrade)
	mustRelease(t, lease)
}
