package listeners_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/listeners"
)

// started runs fn on a goroutine of its own and returns what is true once fn
// has returned.
func started(fn func()) *atomic.Bool {
	var done atomic.Bool
	go func() {
		fn()
		done.Store(true)
	}()
	return &done
}

func TestRemove_waits_for_the_running_call(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		release := make(chan struct{})
		var a, b record[int]
		remove := q.Add(func(e int) { <-release; a.add(e) })
		q.Add(b.add)
		q.Notify(1)
		q.Notify(2)
		synctest.Wait()

		first, second := started(remove), started(remove)
		synctest.Wait()
		if first.Load() || second.Load() {
			t.Error("remove returned while the listener ran")
		}
		q.Notify(3)
		close(release)
		synctest.Wait()
		if !first.Load() || !second.Load() {
			t.Error("remove did not return after the call")
		}
		a.check(t, "the one that was removed", 1)
		b.check(t, "the other", 1, 2, 3)
		remove() // has nothing to wait for
	})
}

func TestRemoveFromInsideDoesNotWaitForItself(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		var a record[int]
		var remove func()
		remove = q.Add(func(e int) {
			remove()
			remove()
			a.add(e)
		})
		q.Notify(1)
		q.Notify(2)
		synctest.Wait()
		q.Notify(3)
		synctest.Wait()
		a.check(t, "the listener", 1)
	})
}

func TestRemoveByThePanicHookDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var remove func()
		var reports record[string]
		q := listeners.NewQueued[int](func(p *listeners.PanicError) {
			remove()
			reports.add(p.Error())
		})
		remove = q.Add(func(e int) { panic(e) })
		q.Notify(1)
		q.Notify(2)
		synctest.Wait()
		reports.check(t, "the hook", "listeners: listener panicked: 1")
	})
}

func TestRemove_by_a_goroutine_of_the_listener(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		release := make(chan struct{})
		var remove func()
		var removed *atomic.Bool
		remove = q.Add(func(int) {
			removed = started(remove)
			<-release
		})
		q.Notify(1)
		synctest.Wait()
		if removed.Load() {
			t.Error("remove returned while the listener ran")
		}
		close(release)
		synctest.Wait()
		if !removed.Load() {
			t.Error("remove did not return after the call")
		}
	})
}

func TestRemoveByAnotherListenerWaits(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		release := make(chan struct{})
		var order record[string]
		begun := make(chan struct{})
		remove := q.Add(func(int) { close(begun); <-release; order.add("called") })
		q.Add(func(int) { <-begun; remove(); order.add("removed") })
		q.Notify(1)
		synctest.Wait()
		order.check(t, "before the release: they")
		close(release)
		synctest.Wait()
		order.check(t, "they", "called", "removed")
	})
}

func TestNoCallBeginsAfterRemoveHasReturned(t *testing.T) {
	t.Parallel()
	q := listeners.NewQueued[int](noPanic(t))
	var removers, notifier sync.WaitGroup
	for range 4 {
		removers.Go(func() {
			for range 200 {
				removed := false // without a lock: the race detector is a check too
				remove := q.AddWith(-1, func(int) {
					if removed {
						t.Error("called after remove had returned")
					}
					runtime.Gosched()
				})
				runtime.Gosched()
				remove()
				removed = true
			}
		})
	}
	var stop atomic.Bool
	notifier.Go(func() {
		for i := 0; !stop.Load(); i++ {
			q.Notify(i)
			runtime.Gosched()
		}
	})
	removers.Wait()
	stop.Store(true)
	notifier.Wait()
}

// TestRemoveOfVeryMany: many holds of a client listen for a break of its connection, and each removes itself then.
// The client can't notify of the next state meanwhile.
func TestRemoveOfVeryMany(t *testing.T) {
	t.Parallel()
	q := listeners.NewQueued[int](noPanic(t))
	removes := make([]func(), 100_000)
	for i := range removes {
		removes[i] = q.Add(func(int) {})
	}
	start := time.Now()
	for _, remove := range removes {
		remove()
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the removal of %d listeners took %v, want a few ms", len(removes), took)
	}
}
