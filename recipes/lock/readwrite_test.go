package lock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestTheSidesOfOneOwnerAreUnlockedByThemselves, in any order.
func TestTheSidesOfOneOwnerAreUnlockedByThemselves(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		rw := newReadWrite(t, virtualClient(t, srv), "/rwowner/sides")
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
	})
}

// TestWhoDiesInTheQueueIsPassed: Redisson issues 2278 and 3730, where the queue entries of dead
// clients blocked all others.
func TestWhoDiesInTheQueueIsPassed(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := anyPath("/rwowner")
		c := env.Client(t)
		rw := newReadWrite(t, c, path)
		held := mustLockAs(asOwner(t, "reader"), t, rw.Read())
		dying, route := onRoute(t, env)
		ctx, cancel := context.WithCancel(asOwner(t, "dead"))
		dead := queueUp(ctx, t, newReadWrite(t, dying, path).Write(), c, path, 2)
		reader := queueUp(asOwner(t, "next"), t, rw.Read(), c, path, 3)
		mustWait(t, "everybody behind the reader", dead, reader)
		route.ExpireAndRefuse(t)
		mustRelease(t, granted(t, reader, "the reader behind the dead"))
		mustRelease(t, held)
		cancel()
		wantErr(t, "Lock", failed(t, dead, "the end of the dead one's Lock"), context.Canceled)
	}, oneOfEach())
}

// TestTheSidesAreLostOneByOneToAnOperator: CURATOR-171, where no holder noticed. A read node holds
// by itself: it was created while the write node existed.
func TestTheSidesAreLostOneByOneToAnOperator(t *testing.T) {
	t.Parallel()
	for _, lostSide := range []string{"write", "read"} {
		t.Run(lostSide, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
				const path = "/rwloss/operator"
				c, operator := virtualClient(t, srv), virtualClient(t, srv)
				rw := newReadWrite(t, c, path)
				one := asOwner(t, "one")
				lost, kept := mustLockAs(one, t, rw.Write()), mustLockAs(one, t, rw.Read())
				if lostSide == "read" {
					lost, kept = kept, lost
				}
				writer := lockLater(t.Context(), newReadWrite(t, operator, path).Write())
				await(time.Second)
				deleteNode(t, operator, lost.Node())
				must.Receive(t, lost.Lost(), "the loss of the lease")
				wantErr(t, "lost lease", lost.Err(), lock.ErrNodeDeleted)
				await(time.Second)
				mustWaitStill(t, "the writer behind the other node", writer)
				wantErr(t, "the other lease", kept.Err(), nil)
				mustRelease(t, kept)
				mustRelease(t, granted(t, writer, "the writer behind"))
			})
		})
	}
}

// TestUpgradeIsRefused for whoever has the read side, alone or after the write side, also to an owner whose other
// goroutine has it or gets it first.
func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
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
		"an owner whose other goroutine gets the read side first": func(ctx context.Context, t *testing.T, rw *lock.RWMutex) *lock.Lease {
			held := mustLockAs(asOwner(t, "writer"), t, rw.Write())
			reader := lockLater(ctx, rw.Read())
			await(time.Second)
			writer := lockLater(ctx, rw.Write())
			await(time.Second)
			mustWaitStill(t, "both goroutines", reader, writer)
			mustRelease(t, held)
			wantErr(t, "Lock", failed(t, writer, "the refusal"), lock.ErrUpgrade)
			return granted(t, reader, "the read side")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
				path := anyPath("/upgrade")
				c, route := onRoute(t, env)
				rw := newReadWrite(t, c, path)
				one := asOwner(t, "one")
				reading := hold(one, t, rw)
				route.ResetRequests()
				for try, attempt := range map[string]func(context.Context) (*lock.Lease, error){
					"lock": rw.Write().Lock, "try lock": rw.Write().TryLock, "lock of another value": newReadWrite(t, c, path).Write().Lock,
				} {
					wantErr(t, try, errOf(attempt(one)), lock.ErrUpgrade)
				}
				if n := route.Count(fault.Create, fault.GetChildren); n != 0 {
					t.Errorf("%d requests for what can't be had, want 0", n)
				}
				if _, err := rw.Write().Lock(one); err == nil || err.Error() != fmt.Sprintf(
					"lock: lock write side of %s: caller has the read side, which can't be upgraded: release it first", path) {
					t.Errorf("error %q", err)
				}
				mustBeHeld(asOwner(t, "another"), t, rw.Write())
				mustRelease(t, reading)
				mustRelease(t, mustLockAs(one, t, rw.Write()))
			}, zkenv.Only("virtual time", zkenv.Embedded))
		})
	}
}
