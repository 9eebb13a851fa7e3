package listeners_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/goid"
	"github.com/docent-go/docent/listeners"
)

func TestSet_calls_listeners_in_order(t *testing.T) {
	t.Parallel()
	var s listeners.Set[int]
	var calls record[string]
	s.Notify(0)
	here := goid.ID()
	for _, name := range []string{"a", "b", "c"} {
		s.Add(func(e int) {
			if goid.ID() != here {
				t.Errorf("%s was called on another goroutine", name)
			}
			calls.add(fmt.Sprint(name, e))
		})
	}
	s.Notify(1)
	s.Notify(2)
	calls.check(t, "the set", "a1", "b1", "c1", "a2", "b2", "c2")
}

func TestSetForgetsWhatIsRemoved(t *testing.T) {
	t.Parallel()
	var s listeners.Set[int]
	var calls record[string]
	listen := func(name string) func(int) { return func(e int) { calls.add(fmt.Sprint(name, e)) } }
	removeA := s.Add(listen("a"))
	b := listen("b")
	removeB := s.Add(b)
	s.Add(b)
	s.Notify(1)
	removeB()
	removeB() // has nothing left to remove, and does not take the other b
	s.Notify(2)
	removeA()
	s.Notify(3)
	calls.check(t, "the set", "a1", "b1", "b1", "a2", "b2", "b3")
}

func TestSetMayBeChangedByItsListeners(t *testing.T) {
	t.Parallel()
	var s listeners.Set[int]
	var calls record[string]
	var removeB, removeSelf func()
	removeSelf = s.Add(func(e int) {
		calls.add(fmt.Sprint("a", e))
		removeSelf()
		removeB()
		s.Add(func(e int) { calls.add(fmt.Sprint("d", e)) })
	})
	removeB = s.Add(func(e int) { calls.add(fmt.Sprint("b", e)) })
	s.Add(func(e int) {
		calls.add(fmt.Sprint("c", e))
		if e == 1 {
			s.Notify(2)
		}
	})
	s.Notify(1) // does not reach b, which has been removed, nor d, which came later
	calls.check(t, "the set", "a1", "c1", "c2", "d2")
}

func TestSetReportsAPanicAndCallsTheOthers(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	var calls record[string]
	var reports []*listeners.PanicError
	s := listeners.Set[int]{OnPanic: func(p *listeners.PanicError) { reports = append(reports, p) }}
	s.Add(func(int) { explode("boom") })
	s.Add(func(e int) { calls.add(fmt.Sprint("a", e)) })
	s.Add(func(int) { explode(errBoom) })
	s.Add(func(int) { explode(nil) })

	s.Notify(1)
	s.Notify(2)
	calls.check(t, "the listener between", "a1", "a2")
	if len(reports) != 6 {
		t.Fatalf("%d reports, want 6", len(reports))
	}
	if got := reports[0]; got.Value != "boom" || got.Error() != "listeners: listener panicked: boom" || got.Unwrap() != nil {
		t.Errorf("report = %#v, text %q", got.Value, got)
	}
	if !errors.Is(reports[1], errBoom) {
		t.Errorf("the report of an error's panic is not that error, but %v", reports[1])
	}
	if _, ok := reports[2].Value.(*runtime.PanicNilError); !ok {
		t.Errorf("the report of panic(nil) has %#v", reports[2].Value)
	}
	for _, p := range reports {
		if !strings.Contains(string(p.Stack), "listeners_test.explode") {
			t.Errorf("the stack does not show where the panic was:\n%s", p.Stack)
		}
	}
}

//go:noinline
func explode(v any) { panic(v) }

func TestSet_without_a_hook_repeats_the_panic(t *testing.T) {
	t.Parallel()
	var s listeners.Set[int]
	var calls record[string]
	s.Add(func(int) { panic("first") })
	s.Add(func(e int) { calls.add(fmt.Sprint("a", e)) })
	s.Add(func(int) { panic("last") })
	if got := panicOf(func() { s.Notify(1) }); got != "last" {
		t.Errorf("panic = %v, want the last one, which replaces the first", got)
	}
	calls.check(t, "the listener between", "a1")
}

func TestSet_when_a_listener_ends_the_goroutine(t *testing.T) {
	t.Parallel()
	s := listeners.Set[int]{OnPanic: noPanic(t)}
	var calls record[string]
	s.Add(func(int) { runtime.Goexit() })
	s.Add(func(e int) { calls.add(fmt.Sprint("a", e)) })
	var wg sync.WaitGroup
	wg.Go(func() {
		s.Notify(1)
		calls.add("returned")
	})
	wg.Wait()
	calls.check(t, "the set", "a1")
}

func TestSetMayBeUsedConcurrently(t *testing.T) {
	t.Parallel()
	var s listeners.Set[int]
	var always, inOrder record[int]
	s.Add(always.add)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				remove := s.Add(inOrder.add)
				s.Notify(i)
				remove()
			}
		})
	}
	wg.Wait()
	if got := len(always.events()); got != 400 {
		t.Errorf("the listener that stayed saw %d events, want 400", got)
	}
	if got := len(inOrder.events()); got < 400 {
		t.Errorf("the listeners that came and went saw %d events, want at least their own 400", got)
	}
}

func TestNilIsRefused(t *testing.T) {
	t.Parallel()
	var s listeners.Set[int]
	q := listeners.NewQueued[int](noPanic(t))
	tests := map[string]func(){
		"listeners: Set.Add: fn: must not be nil":        func() { s.Add(nil) },
		"listeners: Queued.Add: fn: must not be nil":     func() { q.Add(nil) },
		"listeners: Queued.AddWith: fn: must not be nil": func() { q.AddWith(1, nil) },
		"listeners: NewQueued: onPanic: must not be nil": func() { listeners.NewQueued[int](nil) },
	}
	for want, fn := range tests {
		if got := panicOf(fn); got != want {
			t.Errorf("panic = %v, want %s", got, want)
		}
	}
}
