package lock_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// If a broken connection costs the lock, it does so from the grant on. It does not begin only
// after the time that the lock's znode may be unwatched.
func TestABrokenConnectionCountsFromTheGrantOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		lease := mustLock(t, newMutex(t, virtualClient(t, srv), "/broken", recipes.WithLossPolicy(lease.OnSuspend)))
		synctest.Wait()
		if err := lease.Err(); err != nil {
			t.Fatalf("while the connection stands: %v", err)
		}
		srv.Refuse()
		srv.Cut()
		<-time.After(time.Millisecond)
		if err := lease.Err(); !errors.Is(err, errSuspended) {
			t.Errorf("a moment after the connection broke: %v, want that it is lost", err)
		}
		srv.Accept()
	})
}

// A function of the user's that is at work when the client is closed is waited for.
func TestCloseWaitsForARevocationAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		begun := make(chan struct{})
		var done atomic.Bool
		lease := mustLock(t, newMutex(t, c, "/at-work", recipes.WithRevocation(func(*lock.Lease) {
			close(begun)
			<-time.After(2 * time.Second)
			done.Store(true)
		})))
		must.OK(t, lock.Revoke(t.Context(), virtualClient(t, srv), firstOf(lease).Node()))
		<-begun
		must.OK(t, c.Close())
		if !done.Load() {
			t.Error("the client is closed, and the function is at work")
		}
	})
}
