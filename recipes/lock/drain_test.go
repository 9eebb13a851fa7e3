package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
)

// TestWaitersOfOneClientLearnFromOneAnother has many goroutines of one client wait. Each is
// granted without a listing: the grant of its predecessor shows that no contender is left before
// that.
func TestWaitersOfOneClientLearnFromOneAnother(t *testing.T) {
	t.Parallel()
	const path, waiters = "/drain/quiet", 30
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		m := newMutex(t, virtualClient(t, srv), path)
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() { mustRelease(t, mustLock(t, m)) })
			synctest.Wait() // one that is listed before its creation is answered is not known yet
		}
		lists := countListings(srv, path)
		mustRelease(t, held)
		wg.Wait()
		if n := lists(); n > 0 {
			t.Errorf("%d waiters took %d listings while they were granted, want none", waiters, n)
		}
	})
}

// TestAWaiterIsToldOfItsPredecessorsGrant: it is behind the holder then, whatever it was before.
func TestAWaiterIsToldOfItsPredecessorsGrant(t *testing.T) {
	t.Parallel()
	const path = "/drain/position"
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		held := mustLock(t, newMutex(t, c, path))
		first := lockLater(t.Context(), newMutex(t, c, path))
		synctest.Wait()
		var positions []int
		last := lockLater(t.Context(), newMutex(t, c, path, recipes.WithQueuePosition(func(ahead int) {
			positions = append(positions, ahead)
		})))
		synctest.Wait()
		lists := countListings(srv, path)
		mustRelease(t, held)
		lease := must.Receive(t, first, "the first waiter's grant").lease
		synctest.Wait()
		mustRelease(t, lease)
		mustRelease(t, must.Receive(t, last, "the last waiter's grant").lease)
		if got, want := fmt.Sprint(positions), "[2 1 0]"; got != want {
			t.Errorf("positions %v, want %v", got, want)
		}
		if n := lists(); n != 0 {
			t.Errorf("%d listings, want none", n)
		}
	})
}

// TestPredecessorThatWithdrawsIsNoGrant: the holder of another client is still ahead.
func TestPredecessorThatWithdrawsIsNoGrant(t *testing.T) {
	t.Parallel()
	const path = "/drain/givesup"
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		c := virtualClient(t, srv)
		ctx, cancel := context.WithCancel(t.Context())
		first := lockLater(ctx, newMutex(t, c, path))
		synctest.Wait()
		last := lockLater(t.Context(), newMutex(t, c, path))
		synctest.Wait()
		cancel()
		if r := must.Receive(t, first, "the end of the first wait"); r.err == nil {
			t.Fatal("a wait whose context ended was granted")
		}
		synctest.Wait()
		select {
		case r := <-last:
			t.Fatalf("granted beside the holder: %v, %v", r.lease, r.err)
		default:
		}
		mustRelease(t, held)
		mustRelease(t, must.Receive(t, last, "the grant").lease)
	})
}

// bySequence compares the paths of contenders by the number that the server gave.
func bySequence(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) }

// TestAnOperatorDeletesThePredecessor: the waiter behind it must list, because the holder's znode
// exists.
func TestAnOperatorDeletesThePredecessor(t *testing.T) {
	t.Parallel()
	const path = "/drain/operator"
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		operator := virtualClient(t, srv)
		held := mustLock(t, newMutex(t, operator, path))
		c := virtualClient(t, srv)
		first := lockLater(t.Context(), newMutex(t, c, path))
		synctest.Wait()
		middle := slices.MaxFunc(znodesBelow(srv, path), bySequence)
		last := lockLater(t.Context(), newMutex(t, c, path))
		synctest.Wait()
		must.OK(t, operator.Delete(t.Context(), middle))
		synctest.Wait()
		for name, done := range map[string]<-chan result{"first": first, "last": last} {
			select {
			case r := <-done:
				t.Fatalf("%s granted beside the holder: %v, %v", name, r.lease, r.err)
			default:
			}
		}
		mustRelease(t, held)
		mustRelease(t, must.Receive(t, last, "the last one's grant").lease)
		mustRelease(t, must.Receive(t, first, "the grant of who queued again").lease)
	})
}
