package listeners_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/listeners"
)

func TestQueued_shows_all_listeners_one_order(t *testing.T) {
	t.Parallel()
	q := listeners.NewQueued[int](noPanic(t))
	records := make([]record[int], 4)
	for i := range records {
		q.Add(records[i].add)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				q.Notify(g*1000 + i)
			}
		})
	}
	wg.Wait()
	must.OK(t, q.Close(t.Context()))

	want := records[0].events()
	latest := make(map[int]int)
	for _, e := range want {
		if g, i := e/1000, e%1000; i != latest[g] {
			t.Fatalf("event %d of goroutine %d came where %d was due", i, g, latest[g])
		}
		latest[e/1000]++
	}
	if len(want) != 800 {
		t.Fatalf("%d events, want 800", len(want))
	}
	for i := range records {
		records[i].check(t, fmt.Sprint("listener ", i), want...)
	}
}

func TestQueuedCallsOneListenerNeverTwiceAtOnce(t *testing.T) {
	t.Parallel()
	q := listeners.NewQueued[int](noPanic(t))
	running, seen := 0, 0 // without a lock: the race detector is the check
	q.Add(func(int) {
		running++
		if running != 1 {
			t.Errorf("%d calls at once", running)
		}
		runtime.Gosched()
		running--
		seen++
	})
	for i := range 200 {
		q.Notify(i)
		runtime.Gosched()
	}
	if err := q.Close(t.Context()); err != nil || seen != 200 {
		t.Errorf("Close = %v after %d events, want nil after 200", err, seen)
	}
}

func TestQueuedReportsAPanicAndGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reports record[string]
		q := listeners.NewQueued[int](func(p *listeners.PanicError) {
			if !strings.Contains(string(p.Stack), "listeners_test.TestQueued") {
				t.Errorf("the stack does not show where the panic was:\n%s", p.Stack)
			}
			reports.add(p.Error())
		})
		var a, b record[int]
		q.Add(func(e int) {
			if e < 3 {
				panic(e)
			}
			a.add(e)
		})
		q.Add(b.add)
		for e := range 5 {
			q.Notify(e)
		}
		synctest.Wait()
		a.check(t, "the one that panics", 3, 4)
		b.check(t, "the other", 0, 1, 2, 3, 4)
		reports.check(t, "the hook",
			"listeners: listener panicked: 0", "listeners: listener panicked: 1", "listeners: listener panicked: 2")
	})
}

func TestQueuedGoesOnWhenAListenerEndsItsGoroutine(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		var a record[int]
		var remove func()
		remove = q.Add(func(e int) {
			a.add(e)
			if e == 3 {
				remove() // from inside, on a goroutine that is not the first
			}
			runtime.Goexit()
		})
		for e := range 5 {
			q.Notify(e)
		}
		must.OK(t, q.Close(t.Context()))
		a.check(t, "the listener", 0, 1, 2, 3)
	})
}

func TestQueuedMayBeUsedByItsListeners(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		var a, b record[int]
		q.Add(func(e int) {
			a.add(e)
			if e == 1 {
				q.AddWith(10, b.add)
				q.Notify(2)
			}
		})
		q.Notify(1)
		synctest.Wait()
		a.check(t, "a", 1, 2)
		b.check(t, "b", 10, 2)
	})
}

func TestQueuedAddWith_under_the_states_lock(t *testing.T) {
	t.Parallel()
	q := listeners.NewQueued[int](noPanic(t))
	var mu sync.Mutex // guards state and its notification
	state := 0
	records := make([]record[int], 50)

	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 500 {
				mu.Lock()
				state++
				q.Notify(state)
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		for i := range records {
			mu.Lock()
			q.AddWith(state, records[i].add)
			mu.Unlock()
			runtime.Gosched()
		}
	})
	wg.Wait()
	must.OK(t, q.Close(t.Context()))
	for i := range records {
		seen := records[i].events()
		if len(seen) == 0 || seen[len(seen)-1] != 1000 {
			t.Fatalf("listener %d saw %v, want it to end at 1000", i, seen)
		}
		for k, e := range seen {
			if e != seen[0]+k {
				t.Fatalf("listener %d saw %v, which has a gap or a repetition", i, seen)
			}
		}
	}
}

func TestQueuedFirstEventPrecedesConcurrentOnes(t *testing.T) {
	t.Parallel()
	q := listeners.NewQueued[int](noPanic(t))
	records := make([]record[int], 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 1000 {
			q.Notify(i)
		}
	})
	for i := range records {
		q.AddWith(-1, records[i].add)
	}
	wg.Wait()
	must.OK(t, q.Close(t.Context()))
	for i := range records {
		seen := records[i].events()
		if len(seen) == 0 || slices.Index(seen, -1) != 0 || slices.Contains(seen[1:], -1) {
			t.Fatalf("listener %d saw %v, want -1 first and only there", i, seen)
		}
	}
}
