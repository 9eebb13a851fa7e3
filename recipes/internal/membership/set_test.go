package membership //nolint:testpackage // it tests what is not exported

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
)

// A door counts how many times it was closed.
type door struct {
	closed atomic.Int32
	err    error
}

func (d *door) Closed() bool { return d.closed.Load() > 0 }

func (d *door) Close(context.Context) error {
	d.closed.Add(1)
	return d.err
}

func open(s *Set, key any, d *door) (*door, error) {
	return Open(s, key, func() (*door, error) { return d, nil })
}

func TestASetClosesWhatIsOpen(t *testing.T) {
	t.Parallel()
	var s Set
	fault := errors.New("it is stuck")
	first, again, other := new(door), new(door), &door{err: fault}
	for _, d := range []*door{first, again} {
		if got, err := open(&s, "a", d); err != nil || got != d {
			t.Fatalf("Open: %v, %v", got, err)
		}
		recipetest.Fails(t, "Open of a key that is open", recipetest.Err(open(&s, "a", new(door))), ErrOpen)
		if d == first {
			_ = d.Close(t.Context()) // the key is free again
		}
	}
	must.Get(open(&s, "b", other))(t)
	recipetest.Fails(t, "Close", s.Close(t.Context()), fault)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("a further Close: %v", err)
	}
	for name, d := range map[string]*door{"first": first, "again": again, "other": other} {
		if n := d.closed.Load(); n != 1 {
			t.Errorf("%s was closed %d times, want once", name, n)
		}
	}
	recipetest.Fails(t, "Open after Close", recipetest.Err(open(&s, "c", new(door))), framework.ErrClosed)
}

// The context of Close ends while a member is being opened, or has ended before: no member stays open.
func TestASetThatIsClosedInNoTimeLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var waits Set
	d := new(door)
	got := must.Get(Open(&waits, "a", func() (*door, error) {
		recipetest.Fails(t, "Close", waits.Close(over), context.Canceled)
		return d, nil
	}))(t)
	if n := d.closed.Load(); n != 1 || got != d {
		t.Errorf("the member was closed %d times, want once", n)
	}
	for range 50 { // which of two cases a select takes is random
		d := &door{err: over.Err()}
		made := &opening{set: new(Set), made: make(chan struct{}), member: d}
		close(made.made)
		recipetest.Fails(t, "Close of a member that is open", made.Close(over), context.Canceled)
		if n := d.closed.Load(); n != 1 {
			t.Fatalf("a member that is open was closed %d times, want once", n)
		}
	}
}

func TestAFailedOpenAddsNothing(t *testing.T) {
	t.Parallel()
	var s Set
	fault := errors.New("no door")
	recipetest.Fails(t, "Open", recipetest.Err(Open(&s, "a", func() (*door, error) { return nil, fault })), fault)
	if _, err := open(&s, "a", new(door)); err != nil {
		t.Errorf("Open after a failed one: %v", err)
	}
}

// A Set keeps no reference to members that were closed long ago.
func TestASetForgetsWhatIsClosed(t *testing.T) {
	t.Parallel()
	var s Set
	const doors = 1000
	var freed atomic.Int32
	for i := range doors {
		d := new(door)
		runtime.AddCleanup(d, func(int) { freed.Add(1) }, i)
		must.Get(open(&s, i, d))(t)
		_ = d.Close(t.Context())
	}
	for range 100 {
		if runtime.GC(); freed.Load() > doors-200 {
			break
		}
		runtime.Gosched()
	}
	if n := freed.Load(); n <= doors-200 {
		t.Errorf("%d of %d closed members were freed", n, doors)
	}
	runtime.KeepAlive(&s)
}
