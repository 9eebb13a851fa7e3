package lock_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
)

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
					receive(t, lease.Lost(), "the loss")
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
