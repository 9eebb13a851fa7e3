package lock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// Loss before succession, also where the client ends the session itself: a lease's Lost
// is closed when its znode goes.
func TestLossIsToldBeforeCloseGivesTheLockAway(t *testing.T) {
	t.Parallel()
	const path = "/close/lock"
	for _, k := range kindsThat(kind.exclusive) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					var held atomic.Pointer[lock.Lease]
					var gone atomic.Int32
					srv := virtualServer(t, zkserver.WithObserver(func(x zkserver.Transaction) {
						l := held.Load()
						for _, c := range x.Changes {
							if l == nil || c.Kind != zkserver.Deleted || c.Path != firstOf(l).Node() {
								continue
							}
							gone.Add(1)
							select {
							case <-l.Lost():
							default:
								t.Error("the znode is gone, and Lost is not closed")
							}
						}
					}))
					c := virtualClient(t, srv)
					held.Store(mustLock(t, k.lock(t, c, path)))
					await(time.Second)
					must.OK(t, c.Close())
					if gone.Load() != 1 {
						t.Errorf("the znode went %d times, want once", gone.Load())
					}
				})
			}
		})
	}
}

// TestNoLeaseIsHeldWhileItsClientCloses withholds the request that ends the session, and asks the
// leases of all kinds meanwhile.
func TestNoLeaseIsHeldWhileItsClientCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		rw := newReadWrite(t, c, "/closing/rw")
		leases := map[string]*lock.Lease{
			"mutex":     mustLock(t, newMutex(t, c, "/closing/mutex")),
			"write":     mustLock(t, rw.Write()),
			"read":      mustLock(t, rw.Read()),
			"semaphore": mustLock(t, newSemaphoreMutex(t, c, "/closing/semaphore")),
			"unfair":    mustLock(t, newUnfairMutex(t, c, "/closing/unfair")),
			"multi":     mustLock(t, newMulti(t, newMutexes(t, c, "/closing/a", "/closing/b")...)),
			"local":     mustLock(t, newLocal(t, newMutex(t, c, "/closing/local"), 3)),
		}
		ends := make(map[string]<-chan struct{})
		for name, l := range leases {
			ctx, cancel := l.Context(t.Context())
			defer cancel()
			ends[name] = ctx.Done()
		}
		held := srv.Rules().Add(fault.Rule{Op: fault.CloseSession, Action: fault.HoldRequest})
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		<-held.Hit()
		for name, l := range leases {
			if err := l.Err(); !errors.Is(err, framework.ErrClosed) {
				t.Errorf("%s: %v while the client closes, want ErrClosed", name, err)
			}
			for what, done := range map[string]<-chan struct{}{"Lost": l.Lost(), "a context": ends[name]} {
				select {
				case <-done:
				default:
					t.Errorf("%s: %s has not ended while the client closes", name, what)
				}
			}
		}
		held.Release()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}
