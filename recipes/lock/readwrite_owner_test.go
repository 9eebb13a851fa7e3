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

// TestReadWriteCountsItsLocks per owner, over all values at one path: kazoo
// issue 291, where the first of several releases gave the lock back, and Netflix
// Curator's issue 75, where two values waited for each other.
func TestReadWriteCountsItsLocks(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	for name, side := range map[string]func(*lock.RWMutex) *lock.Side{
		"read": (*lock.RWMutex).Read, "write": (*lock.RWMutex).Write,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "/rwowner/count-" + name
			c, proxy := behindProxy(t, server)
			one, two := side(newReadWrite(t, c, path)), side(newReadWrite(t, c, path))
			owner, stranger := asOwner(t, "owner"), asOwner(t, "stranger")
			mustLockAs(owner, t, one)
			proxy.ResetRequests()
			mustLockAs(owner, t, two)
			mustLockAs(owner, t, tryLock{one})
			if n := proxy.Count(fault.Create, fault.GetChildren); n != 0 {
				t.Errorf("%d requests to re-enter, want 0", n)
			}
			writes := newReadWrite(t, newClient(t, server.Addr()), path).Write()
			for count := 3; count > 0; count-- {
				if n := two.Held(owner); n != count {
					t.Errorf("held %d times, want %d", n, count)
				}
				mustBeHeld(stranger, t, writes)
				if err := one.Unlock(stranger); !errors.Is(err, lock.ErrNotOwner) {
					t.Errorf("Unlock by a stranger: %v, want ErrNotOwner", err)
				}
				if err := one.Unlock(owner); err != nil {
					t.Error(err)
				}
			}
			if err := two.Unlock(owner); !errors.Is(err, lock.ErrNotOwner) {
				t.Errorf("Unlock of what was given back: %v, want ErrNotOwner", err)
			}
			mustRelease(t, mustLockAs(stranger, t, writes))
		})
	}
}

// TestLeaseOfASide_is_released_by_any_goroutine: CURATOR-347, where a lock could only be
// given back by the thread that had got it.
func TestLeaseOfASide_is_released_by_any_goroutine(t *testing.T) {
	t.Parallel()
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, "/rwowner/hand-over")
	for _, side := range []*lock.Side{rw.Read(), rw.Write()} {
		lease := granted(t, lockLater(t.Context(), side), "another goroutine's lease")
		if err := side.Unlock(t.Context()); !errors.Is(err, lock.ErrNotOwner) {
			t.Errorf("Unlock by another goroutine: %v, want ErrNotOwner", err)
		}
		if n := side.Held(t.Context()); n != 0 {
			t.Errorf("held %d times by a goroutine that holds nothing, want 0", n)
		}
		mustRelease(t, lease)
	}
}

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
			if err := side.Unlock(owner); err != nil {
				t.Error(err)
			}
			if n := side.Held(owner); n != 0 {
				t.Errorf("held %d times after its Unlock, want 0", n)
			}
			if err := side.Unlock(owner); !errors.Is(err, lock.ErrNotOwner) {
				t.Errorf("second Unlock: %v, want ErrNotOwner", err)
			}
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
	if err := dying.Close(); err != nil {
		t.Error(err)
	}
	if got := must.Receive(t, dead, "the end of the dead one's Lock"); !errors.Is(got.err, framework.ErrClosed) {
		t.Errorf("Lock: %v, want an error that matches ErrClosed", got.err)
	}
}
