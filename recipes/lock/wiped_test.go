package lock_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

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
			mustWaitStill(t, fmt.Sprintf("beside a holder, %d writes after the creation", prior), done)
			mustRelease(t, held)
			mustRelease(t, granted(t, done, "the grant"))
		})
	}
}
