package listeners_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/listeners"
)

func TestCloseDeliversWhatIsQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := listeners.NewQueued[string](noPanic(t))
		var a, b record[string]
		q.Add(func(e string) { <-time.After(time.Second); a.add(e) })
		q.Add(b.add)
		q.Notify("connected")
		q.Notify("lost")
		q.Notify("closed")
		start := time.Now()
		must.OK(t, q.Close(t.Context()))
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("Close took %v, want 3s", got)
		}
		a.check(t, "the slow one", "connected", "lost", "closed")
		b.check(t, "the fast one", "connected", "lost", "closed")
	})
}

func TestClose_again_waits_for_late_listeners(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		must.OK(t, q.Close(t.Context()))
		var a record[int]
		for e := range 3 {
			q.AddWith(e, func(e int) { <-time.After(time.Second); a.add(e) })
			must.OK(t, q.Close(t.Context()))
		}
		a.check(t, "they", 0, 1, 2)
	})
}

func TestCloseObeysItsContext(t *testing.T) {
	t.Parallel()
	errHurry := errors.New("in a hurry")
	const text = "listeners: close: 2 of 3 listeners still at work: "
	tests := map[string]struct {
		cause error
		is    []error
		text  string
	}{
		"a deadline":                {nil, []error{context.DeadlineExceeded}, text + "context deadline exceeded"},
		"a deadline for a reason":   {errHurry, []error{context.DeadlineExceeded, errHurry}, text + "context deadline exceeded: in a hurry"},
		"a reason that says it all": {errors.Join(context.DeadlineExceeded), []error{context.DeadlineExceeded}, text + "context deadline exceeded"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
				release := make(chan struct{})
				var a, b record[int]
				q.Add(func(e int) { <-release; a.add(e) })
				q.Add(func(e int) { <-release; a.add(e) })
				q.Add(b.add)
				q.Notify(1)
				q.Notify(2)

				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, tt.cause)
				defer cancel()
				start := time.Now()
				err := q.Close(ctx)
				if got := time.Since(start); got != time.Second {
					t.Errorf("Close took %v, want 1s", got)
				}
				if err == nil || err.Error() != tt.text {
					t.Errorf("Close = %v, want %s", err, tt.text)
				}
				for _, target := range tt.is {
					if !errors.Is(err, target) {
						t.Errorf("Close = %v, which is not %v", err, target)
					}
				}
				b.check(t, "the one that does not block", 1, 2)

				closed := started(func() { err = q.Close(t.Context()) })
				synctest.Wait()
				if closed.Load() {
					t.Error("the second Close did not wait")
				}
				close(release)
				synctest.Wait()
				if !closed.Load() || err != nil {
					t.Errorf("the second Close: returned %t, error %v", closed.Load(), err)
				}
				if got := len(a.events()); got != 4 {
					t.Errorf("those that blocked saw %d events, want 4", got)
				}
			})
		})
	}
}

func TestClose_with_an_ended_context(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		q := listeners.NewQueued[int](noPanic(t))
		q.Add(func(int) {})
		q.Notify(1)
		synctest.Wait()
		must.OK(t, q.Close(ctx))
	})
}

// dying is a context that ends as soon as a caller waits for its end, though not before fn has
// run.
type dying struct {
	context.Context
	fn func()
}

func (c dying) Done() <-chan struct{} {
	c.fn()
	ctx, cancel := context.WithCancel(c.Context)
	cancel()
	return ctx.Done()
}

func TestClose_when_its_context_ends_with_the_listeners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 50 { // either channel may be the one that is seen
			q := listeners.NewQueued[int](noPanic(t))
			release := make(chan struct{})
			q.Add(func(int) { <-release })
			q.Notify(1)
			ctx := dying{t.Context(), func() { close(release); synctest.Wait() }}
			must.OK(t, q.Close(ctx))
		}
	})
}

func TestCloseForgetsLateListenersThatAreDone(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = q.Close(ctx)
		for range 3 {
			q.AddWith(1, func(int) {})
			synctest.Wait()
		}
		release := make(chan struct{})
		q.AddWith(1, func(int) { <-release })
		const want = "listeners: close: 1 of 1 listeners still at work: context canceled"
		if err := q.Close(ctx); err == nil || err.Error() != want {
			t.Errorf("Close = %v, want %s", err, want)
		}
		close(release)
	})
}

func TestCloseFromInsideDoesNotWaitForItself(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		release := make(chan struct{})
		var order, other record[string]
		q.Add(func(e int) {
			if e == 1 {
				q.Notify(3)
				if err := q.Close(t.Context()); err != nil {
					t.Error(err)
				}
				q.Notify(4)
				order.add("closed")
				return
			}
			order.add("called again")
		})
		q.Add(func(int) { <-release; other.add("called") })
		q.Notify(1)
		q.Notify(2)
		synctest.Wait()
		order.check(t, "while the other one blocks: the closer")
		close(release)
		synctest.Wait()
		order.check(t, "the closer", "closed", "called again", "called again")
		other.check(t, "the other", "called", "called", "called")
	})
}

func TestClose_from_inside_with_an_ended_context(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 { // either channel may be the one that is seen
			q := listeners.NewQueued[int](noPanic(t))
			q.Add(func(int) {
				if err := q.Close(ctx); err != nil {
					t.Error(err)
				}
			})
			q.Notify(1)
		}
	})
}

func TestCloseByAllListenersAtOnceDoesNotLock(t *testing.T) {
	virtually(t, func(t *testing.T, q *listeners.Queued[int]) {
		var order record[string]
		for range 3 {
			q.Add(func(int) {
				for range 2 {
					if err := q.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				<-time.After(time.Second)
				order.add("listener")
			})
		}
		q.Notify(1)
		must.OK(t, q.Close(t.Context()))
		order.add("closer")
		order.check(t, "they", "listener", "listener", "listener", "closer")
	})
}

// A Queued without Close and remove keeps no goroutine: the check for that is in TestMain.
func TestQueuedThatIsIdleHasNoGoroutine(t *testing.T) {
	t.Parallel()
	q := listeners.NewQueued[int](noPanic(t))
	seen := make(chan int)
	q.Add(func(e int) { seen <- e })
	for e := range 3 {
		q.Notify(e)
		if got := <-seen; got != e {
			t.Errorf("saw %d, want %d", got, e)
		}
	}
}
