package lock_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkproxy"
)

// A holder that abandons its session by its own clock is back, in a new session, as soon as the
// network is. No client waits for the server to expire the old session.
func TestAbandonedSessionDelaysNoClient(t *testing.T) {
	t.Parallel()
	for name, itself := range map[string]bool{"another client": false, "the holder's own next attempt": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const path = "/given-up"
				srv := virtualServer(t)
				proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
					return srv.Dial(ctx, "tcp", srv.Addr())
				})
				holder := virtualClient(t, srv, framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(6*time.Second))
				next := holder
				if !itself {
					next = virtualClient(t, srv)
				}
				lease := mustLock(t, newMutex(t, holder, path))
				var told time.Time
				ended, cancel := lease.Context(t.Context())
				defer cancel()
				context.AfterFunc(ended, func() { told = time.Now() })

				proxy.Blackhole(zkproxy.Both)
				must.Receive(t, lease.Lost(), "the loss")
				synctest.Wait()
				proxy.Heal()
				healed := time.Now()
				got := must.Receive(t, lockLater(t.Context(), newMutex(t, next, path)), "the grant to the next")
				if got.err != nil {
					t.Fatal(got.err)
				}
				const margin = 2 * time.Second // a third of the session timeout
				if took := got.at.Sub(healed); took > margin+time.Second {
					t.Errorf("granted %v after the network was back", took)
				}
				if told.IsZero() || got.at.Sub(told) < margin {
					t.Errorf("told of the loss at %v, the next was granted at %v: want the lease margin of %v between them", told, got.at, margin)
				}
				mustRelease(t, got.lease)
				_ = lease.Release(t.Context()) // lost long ago
			})
		})
	}
}

// TestLostLeasesLeaveTheOwners never releases leases that were lost. Unlock reports the latest losses
// of a bounded number of owners.
func TestLostLeasesLeaveTheOwners(t *testing.T) {
	t.Parallel()
	const leases, remembered = 1100, 1000
	kinds := map[string]func(t testing.TB, c *framework.Client, path string) lock.Locker{
		"UnfairMutex": func(t testing.TB, c *framework.Client, path string) lock.Locker { return newUnfairMutex(t, c, path) },
		"SemaphoreMutex": func(t testing.TB, c *framework.Client, path string) lock.Locker {
			return newSemaphoreMutex(t, c, path)
		},
		"Multi": func(t testing.TB, c *framework.Client, path string) lock.Locker {
			return newMulti(t, newMutex(t, c, path), newUnfairMutex(t, c, path+"/exclusive"))
		},
		"Mutex": func(t testing.TB, c *framework.Client, path string) lock.Locker { return newMutex(t, c, path) },
	}
	for name, newLocker := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := virtualServer(t)
				c := virtualClient(t, srv)
				held := make([]*lock.Lease, leases)
				for i := range held {
					held[i] = mustLock(t, newLocker(t, c, fmt.Sprintf("/lost/%d", i)))
				}
				if n := lock.Registered(c); n == 0 && name == "Multi" {
					t.Error("the registry is empty while the locks are held")
				}
				must.OK(t, srv.Expire(c.Session().ID))
				for _, lease := range held {
					must.Receive(t, lease.Lost(), "the loss")
				}
				synctest.Wait()
				want := 0
				if name == "Mutex" || name == "Multi" {
					want = remembered
				}
				if n := lock.Registered(c); n != want {
					t.Errorf("the owners refer to %d holds after %d losses, want %d", n, leases, want)
				}
			})
		})
	}
}
