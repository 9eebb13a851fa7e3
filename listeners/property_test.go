package listeners_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/docent-go/docent/listeners"
)

// TestPropertyQueuedKeepsItsPromises drives a Queued by random calls and holds
// what each listener saw against the events that it was promised.
func TestPropertyQueuedKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.IntRange(0, 99), 1, 60).Draw(rt, "script")
		var err error // rapid's Fatal has to be called on rapid's goroutine
		synctest.Test(t, func(t *testing.T) { err = play(t, script) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// A promise is a listener, and what it has to have seen.
type promise struct {
	seen   record[int]
	want   []int
	remove func() // nil once it has been called
}

func play(t *testing.T, script []int) error {
	t.Helper()
	q := listeners.NewQueued[int](func(*listeners.PanicError) {})
	var promises []*promise
	closed := false
	for step, op := range script {
		switch p := new(promise); {
		case op < 50:
			q.Notify(step)
			for _, p := range promises {
				if !closed && p.remove != nil {
					p.want = append(p.want, step)
				}
			}
		case op < 65:
			p.remove = q.Add(p.listen)
			promises = append(promises, p)
		case op < 80:
			p.remove = q.AddWith(-step, p.listen)
			p.want = []int{-step}
			promises = append(promises, p)
		case op < 96 && len(promises) > 0:
			// Drained first: which events a remove drops is a matter of timing.
			synctest.Wait()
			if p := promises[op%len(promises)]; p.remove != nil {
				p.remove()
				p.remove = nil
			}
		case op >= 98:
			closed = true
			if err := q.Close(t.Context()); err != nil {
				return err
			}
		}
	}
	if err := q.Close(t.Context()); err != nil {
		return err
	}
	for i, p := range promises {
		if got := p.seen.events(); !slices.Equal(got, p.want) {
			return fmt.Errorf("listener %d saw %v, want %v", i, got, p.want)
		}
	}
	return nil
}

// listen panics now and then, which must make no difference.
func (p *promise) listen(e int) {
	p.seen.add(e)
	if e%7 == 3 {
		panic(e)
	}
}
