package lock_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/recipes/lock"
)

// TestOnSuspend_before_the_lease_is_watched breaks the connection, and waits until it is
// there again, in the function that is told of the grant.
func TestOnSuspend_before_the_lease_is_watched(t *testing.T) {
	t.Parallel()
	told := kindsThat(func(k kind) bool { return k.fair && k.name != "multi" })
	for _, k := range told {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := virtualServer(t)
				c := virtualClient(t, srv)
				calls := 0
				l := k.lock(t, c, "/suspended/lock", lock.WithLossPolicy(lock.OnSuspend), lock.WithQueuePosition(func(ahead int) {
					if ahead > 0 {
						return
					}
					calls++
					srv.Cut()
					synctest.Wait()
					if err := c.AwaitConnected(t.Context()); err != nil {
						t.Error(err)
					}
				}))
				lease := mustLock(t, l)
				synctest.Wait()
				if err := lease.Err(); !errors.Is(err, errSuspended) || calls != 1 {
					t.Errorf("after a break before the lease was watched, told of %d grants: %v, want ErrSuspended", calls, err)
				}
				unbroken := mustLock(t, newMutex(t, c, "/suspended/after", lock.WithLossPolicy(lock.OnSuspend)))
				synctest.Wait()
				if err := unbroken.Err(); err != nil {
					t.Errorf("a lease that was granted after the break: %v", err)
				}
			})
		})
	}
}
