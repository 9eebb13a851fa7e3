package lock_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A server that sheds load refuses the deletion. The deletion is done later.
func TestNoOrphan_when_the_server_throttles_the_delete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/throttled"
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		lease := mustLock(t, newMutex(t, c, path))
		refused := srv.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.Refuse, Code: fault.Throttled})
		t.Logf("release: %v", lease.Release(t.Context()))
		await(time.Minute)
		if refused.Hits() != 1 {
			t.Error("no deletion was refused")
		}
		if left := znodesBelow(srv, path); len(left) != 0 {
			t.Errorf("the deletion was given up: %q", left)
		}
	})
}

// TestWipedServer_is_listed replaces the server by an empty one, as one that
// keeps its data in memory when it starts again: it counts its transactions from the
// beginning, so the number that a mutex remembers means another one there.
func TestWipedServer_is_listed(t *testing.T) {
	t.Parallel()
	for prior := range 4 {
		synctest.Test(t, func(t *testing.T) {
			const path = "/anew"
			var serves atomic.Pointer[zkserver.Server]
			before := virtualServer(t)
			serves.Store(before)
			c := newClient(t, before.Addr(), framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				return serves.Load().Dial(ctx, network, address)
			}))
			must.Get(c.Create(t.Context(), path, nil))(t)
			for range prior {
				must.Get(c.Set(t.Context(), path, nil, framework.AnyVersion))(t)
			}
			m := newMutex(t, c, path)
			mustRelease(t, mustLock(t, m))

			renewed := make(chan struct{})
			defer c.OnState(func(change framework.StateChange) {
				if change.From == framework.Lost && change.To == framework.Connected {
					close(renewed)
				}
			})()
			await(time.Second) // a server numbers its sessions from the time of its start on
			after := virtualServer(t)
			serves.Store(after)
			before.Cut()
			<-renewed
			other := virtualClient(t, after)
			held := mustLock(t, newMutex(t, other, path))
			done := lockLater(t.Context(), m)
			synctest.Wait()
			select {
			case got := <-done:
				t.Errorf("granted beside a holder, %d writes after the creation: %v", prior, got.err)
				mustRelease(t, held)
				mustRelease(t, got.lease)
			default:
				mustRelease(t, held)
				mustRelease(t, must.Receive(t, done, "the grant").lease)
			}
		})
	}
}
