package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zktest"
)

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
				lease, err := attempt(one)
				if lease != nil || !errors.Is(err, lock.ErrUpgrade) {
					t.Errorf("%s: %v, %v; want no lease and ErrUpgrade", try, lease, err)
				}
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

// TestUpgradeAfterTheReadSideIsLost: a lost lease blocks no client, released or not.
func TestUpgradeAfterTheReadSideIsLost(t *testing.T) {
	t.Parallel()
	const path = "/upgrade/lost"
	server := zktest.Shared(t)
	c, proxy := behindProxy(t, server)
	rw := newReadWrite(t, c, path)
	reading := mustLock(t, rw.Read())
	expire(t, server, proxy, c)
	must.Receive(t, reading.Lost(), "the loss of the read lease")
	mustRelease(t, mustLock(t, rw.Write()))
	if err := reading.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of the lost lease: %v, want ErrLost", err)
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
	if got := must.Receive(t, writer, "the refusal"); !errors.Is(got.err, lock.ErrUpgrade) {
		t.Errorf("Lock: %v, %v; want ErrUpgrade", got.lease, got.err)
	}
	mustRelease(t, lease)
}
