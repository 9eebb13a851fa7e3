package lock_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// Loss before succession, also where the client ends the session itself: a lease's Lost
// is closed when its znode goes.
func TestLossIsToldBeforeCloseGivesTheLockAway(t *testing.T) {
	t.Parallel()
	const path = "/close/lock"
	for name, construct := range map[string]func(c *framework.Client) (lock.Locker, error){
		"mutex":     func(c *framework.Client) (lock.Locker, error) { return lock.NewMutex(c, path) },
		"semaphore": func(c *framework.Client) (lock.Locker, error) { return lock.NewSemaphoreMutex(c, path) },
		"exclusive": func(c *framework.Client) (lock.Locker, error) { return lock.NewUnfairMutex(c, path) },
		"multi": func(c *framework.Client) (lock.Locker, error) {
			m, err := lock.NewMutex(c, path)
			if err != nil {
				return nil, err
			}
			return lock.NewMulti(m)
		},
	} {
		t.Run(name, func(t *testing.T) {
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
					l, err := construct(c)
					if err != nil {
						t.Fatal(err)
					}
					held.Store(mustLock(t, l))
					await(time.Second)
					if err := c.Close(); err != nil {
						t.Fatal(err)
					}
					if gone.Load() != 1 {
						t.Errorf("the znode went %d times, want once", gone.Load())
					}
				})
			}
		})
	}
}
