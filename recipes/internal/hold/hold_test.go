package hold_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/recipetest"
)

var errOver = errors.New("session ended")

// A fakeGrant is a grant without a client. It is not for concurrent use, but for lose.
type fakeGrant struct {
	err                 error
	onLost              func(error) // notify, and after it after
	notify              func(error)
	released, discarded int
}

func (g *fakeGrant) Node() string              { return "/a" }
func (g *fakeGrant) Fence() int64              { return 5 }
func (g *fakeGrant) Guards() []framework.TxnOp { return nil }
func (g *fakeGrant) Deadline() time.Time       { return time.Time{} }
func (g *fakeGrant) Err() error                { return g.err }
func (g *fakeGrant) OnLost(notify func(error), after func()) {
	g.notify = notify
	g.onLost = func(err error) {
		notify(err)
		after()
	}
}
func (g *fakeGrant) Discard()                      { g.discarded++ }
func (g *fakeGrant) Release(context.Context) error { g.released++; return nil }

// A fixture is a hold with one share, and what became of it.
type fixture struct {
	grant *fakeGrant
	first *hold.Share
	ended []error
	*hold.Hold
}

func newFixture(err error) *fixture {
	f := &fixture{grant: &fakeGrant{err: err}}
	f.first = hold.New(hold.Options{
		Path:  "/lock",
		Grant: f.grant,
		Lost:  func(cause error) error { return fmt.Errorf("lost: %w", cause) },
		Ended: func(_ *hold.Hold, lost error) { f.ended = append(f.ended, lost) },
	})
	f.Hold = f.first.Hold()
	return f
}

func (f *fixture) mustHaveEnded(t *testing.T, lost error, released, discarded int) {
	t.Helper()
	if len(f.ended) != 1 || !errors.Is(f.ended[0], lost) || (lost == nil) != (f.ended[0] == nil) {
		t.Errorf("ended %v, want once with %v", f.ended, lost)
	}
	if f.grant.released != released || f.grant.discarded != discarded {
		t.Errorf("released %d times, discarded %d times; want %d, %d", f.grant.released, f.grant.discarded, released, discarded)
	}
	if f.Join() != nil {
		t.Error("a share joined after the end")
	}
}

// Its users know of a loss before it cleans up, also those that come after it. Who has released knows of no loss.
func TestALossIsReportedFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(nil)
	released := f.Join()
	recipetest.Fails(t, "the release of one of two", released.Release(t.Context()), nil)
	ctx, cancel := f.first.Context(t.Context())
	defer cancel()
	f.grant.notify(errOver)
	if !errors.Is(context.Cause(ctx), errOver) || !errors.Is(f.first.Err(), errOver) || f.grant.discarded != 0 || f.ended != nil {
		t.Errorf("notified: context %v, share %v, discarded %d times, ended %v", context.Cause(ctx), f.first.Err(), f.grant.discarded, f.ended)
	}
	f.grant.onLost(errOver)
	late, cancelLate := f.first.Context(t.Context())
	defer cancelLate()
	if !errors.Is(context.Cause(late), errOver) || f.first.OnLost(func(error) {}, func() {}) {
		t.Errorf("after the loss: context %v, or OnLost is taken", context.Cause(late))
	}
	recipetest.Fails(t, "the share that was released", released.Err(), hold.ErrReleased)
	f.grant.onLost(errOver)
	f.mustHaveEnded(t, errOver, 0, 1)
}

func TestHoldOfAGrantThatIsOver(t *testing.T) {
	t.Parallel()
	f := newFixture(errOver)
	select { // before Err looks at the grant
	case <-f.first.Lost():
	default:
		t.Error("Lost is open")
	}
	recipetest.Fails(t, "share", f.first.Err(), errOver)
	f.mustHaveEnded(t, errOver, 0, 1)
}

func TestHoldDiscarded(t *testing.T) {
	t.Parallel()
	f := newFixture(nil)
	f.first.Discard()
	f.first.Discard()
	f.mustHaveEnded(t, nil, 0, 1)
}

// TestHoldReleaseAndLossAtOnce has one of the two end the hold, and the other find that.
func TestHoldReleaseAndLossAtOnce(t *testing.T) {
	t.Parallel()
	for range 200 {
		f := newFixture(nil)
		var racing sync.WaitGroup
		var err error
		racing.Go(func() { f.grant.onLost(errOver) })
		racing.Go(func() { err = f.first.Release(t.Context()) })
		racing.Wait()
		if lost := errors.Is(err, errOver); lost {
			f.mustHaveEnded(t, errOver, 0, 1)
		} else {
			f.mustHaveEnded(t, nil, 1, 0)
		}
	}
}
