package counter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

const path = "/number"

// A fixture is a number on an embedded server, in virtual time.
type fixture struct {
	server   *zkserver.Server
	client   *framework.Client
	combiner *combiner
}

// virtually runs the body with a number that is 1. At the end no goroutine may be left.
func virtually(t *testing.T, body func(t *testing.T, f *fixture)) {
	t.Helper()
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		f := &fixture{srv, c, combinerOf(c, path, false, nil)}
		f.mustAdd(t, 1, 1)
		body(t, f)
	})
}

func plus(delta int64) change {
	return func(v int64) (int64, bool, error) { return v + delta, true, nil }
}

// mustAdd adds, and fails the test unless the result is want.
func (f *fixture) mustAdd(t *testing.T, delta, want int64) {
	t.Helper()
	if v, wrote, err := f.combiner.do(t.Context(), plus(delta)); err != nil || v != want || !wrote {
		t.Errorf("%d added: %d, %v, %v; want %d", delta, v, wrote, err, want)
	}
}

// A result is that of a do on another goroutine.
type result struct {
	after int64
	wrote bool
	err   error
}

// start calls combiner.do on a goroutine of its own, and returns when that has sent what it can.
func (f *fixture) start(ctx context.Context, fn change) <-chan result {
	done := make(chan result, 1)
	go func() {
		after, wrote, err := f.combiner.do(ctx, fn)
		done <- result{after, wrote, err}
	}()
	synctest.Wait()
	return done
}

// batch starts the changes as one batch, whose write meets the action. The writes before it have
// been answered then.
func (f *fixture) batch(ctx context.Context, action fault.Action, changes ...change) []<-chan result {
	first := f.server.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.HoldReply})
	before := f.start(ctx, plus(0))
	all := make([]<-chan result, len(changes))
	for i, fn := range changes {
		all[i] = f.start(ctx, fn)
	}
	f.server.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: action})
	first.Release()
	<-before
	synctest.Wait()
	return all
}

// stored returns the number and the version that another reader finds.
func (f *fixture) stored(t *testing.T) (int64, int32) {
	t.Helper()
	data, st, err := f.client.Get(t.Context(), path)
	if err != nil || len(data) != 8 {
		t.Fatalf("data %q, %v", data, err)
	}
	return int64(data[7]), st.Version
}

func TestACallThatIsCancelledInTheMiddleOfItsWriteLeavesTheOthers(t *testing.T) {
	virtually(t, func(t *testing.T, f *fixture) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := f.server.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.HoldReply})
		before := f.start(t.Context(), plus(0))
		stays, leaves, last := f.start(t.Context(), plus(1)), f.start(ctx, plus(10)), f.start(t.Context(), plus(2))
		held := f.server.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.HoldReply})
		first.Release()
		<-before
		<-held.Hit()
		cancel()
		if got := <-leaves; !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, framework.ErrUnknownOutcome) || got.wrote {
			t.Errorf("the call that was cancelled: %+v, want Canceled and ErrUnknownOutcome", got)
		}
		held.Release()
		if one, other := <-stays, <-last; one != (result{2, true, nil}) || other != (result{14, true, nil}) {
			t.Errorf("the other calls: %+v and %+v, want 2 and 14", one, other)
		}
		f.mustAdd(t, 1, 15)
	})
}

func TestAnUnknownOutcomeIsThatOfAllCallsOfTheWrite(t *testing.T) {
	virtually(t, func(t *testing.T, f *fixture) {
		refuse := errors.New("refused")
		calls := f.batch(t.Context(), fault.DropReply, plus(1), plus(2),
			func(v int64) (int64, bool, error) { return v, false, refuse }, plus(4))
		for i, call := range calls {
			if got := <-call; !errors.Is(got.err, framework.ErrUnknownOutcome) || got.wrote {
				t.Errorf("call %d: %+v, want ErrUnknownOutcome", i, got)
			}
		}
		if v, version := f.stored(t); v != 8 || version != 2 {
			t.Errorf("number %d at version %d, want 8 at 2: the write was applied once", v, version)
		}
		f.mustAdd(t, 1, 9)
	})
}

func TestAChangeThatFailsIsLeftOut(t *testing.T) {
	virtually(t, func(t *testing.T, f *fixture) {
		refuse := errors.New("refused")
		calls := f.batch(t.Context(), fault.CutBefore, plus(1),
			func(v int64) (int64, bool, error) { return v + 50, true, refuse },
			func(v int64) (int64, bool, error) { return v, false, nil }, plus(2))
		want := []result{{2, true, nil}, {52, false, refuse}, {2, false, nil}, {4, true, nil}}
		for i, call := range calls {
			if got := <-call; got.after != want[i].after || got.wrote != want[i].wrote || !errors.Is(got.err, want[i].err) {
				t.Errorf("call %d: %+v, want %+v", i, got, want[i])
			}
		}
	})
}

func TestCloseEndsAllCalls(t *testing.T) {
	virtually(t, func(t *testing.T, f *fixture) {
		f.server.Rules().Add(fault.Rule{Op: fault.SetData, Path: path, Action: fault.HoldRequest})
		calls := []<-chan result{f.start(t.Context(), plus(1)), f.start(t.Context(), plus(2)), f.start(t.Context(), plus(3))}
		must.OK(t, f.client.Close())
		for i, call := range calls {
			if got := <-call; !errors.Is(got.err, framework.ErrClosed) {
				t.Errorf("call %d: %+v, want ErrClosed", i, got)
			}
		}
		if _, _, err := f.combiner.do(t.Context(), plus(1)); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("a call after Close: %v, want ErrClosed", err)
		}
	})
}
