package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
)

// workUntilALoss has what a function may do until its lock is lost, and what it may return then.
var workUntilALoss = map[string]func(held context.Context, c *framework.Client, busy lock.Locker) error{
	"nothing":             func(held context.Context, _ *framework.Client, _ lock.Locker) error { <-held.Done(); return nil },
	"the context's error": func(held context.Context, _ *framework.Client, _ lock.Locker) error { <-held.Done(); return held.Err() },
	"the context's cause": func(held context.Context, _ *framework.Client, _ lock.Locker) error {
		<-held.Done()
		return context.Cause(held)
	},
	"a request": func(held context.Context, c *framework.Client, _ lock.Locker) error {
		<-held.Done()
		_, _, err := c.Exists(held, "/")
		return err
	},
	"an inner lock": func(held context.Context, _ *framework.Client, busy lock.Locker) error {
		_, err := busy.Lock(held)
		return err
	},
	"an inner Do": func(held context.Context, _ *framework.Client, busy lock.Locker) error {
		return lock.Do(held, busy, func(context.Context, *lock.Lease) error { return nil })
	},
	"two, of which it has": func(held context.Context, _ *framework.Client, busy lock.Locker) error {
		_, err := busy.Lock(held)
		return errors.Join(err, held.Err())
	},
}

// TestALossIsSaidOnce loses a lock of each kind under Do. The error matches the loss, its text has
// the loss once, and its type is that of a loss.
func TestALossIsSaidOnce(t *testing.T) {
	t.Parallel()
	for name, work := range workUntilALoss {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachKind(t, kinds, func(t *testing.T, k kind) {
				synctest.Test(t, func(t *testing.T) {
					srv := virtualServer(t)
					c, operator := virtualClient(t, srv), virtualClient(t, srv)
					mustLock(t, newMutex(t, operator, "/busy"))
					outer, busy := k.lock(t, c, "/outer"), newMutex(t, c, "/busy")
					deleted := make(chan struct{})
					err := lock.Do(t.Context(), outer, func(held context.Context, l *lock.Lease) error {
						go func() {
							defer close(deleted)
							synctest.Wait() // until the work waits
							deleteNode(t, operator, firstOf(l).Node())
						}()
						return work(held, c, busy)
					})
					<-deleted
					text := err.Error()
					if !errors.Is(err, lock.ErrLost) || strings.Count(text, lock.ErrLost.Error()) != 1 ||
						strings.Count(text, lock.ErrNodeDeleted.Error()) != 1 {
						t.Errorf("Do: %q, want the loss, once", text)
					}
					if kind := framework.ErrorType(err); kind != "lock_lost" {
						t.Errorf("type of %q is %s, want lock_lost", text, kind)
					}
				})
			})
		})
	}
}

// TestALossWhileWaitingForAnInnerLock looks at the spans of a wait that ends because the outer lock
// is lost.
func TestALossWhileWaitingForAnInnerLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		operator := virtualClient(t, srv)
		s := newService("s", func(opts ...framework.Option) *framework.Client { return virtualClient(t, srv, opts...) })
		mustLock(t, newMutex(t, operator, "/busy"))
		outer := mustLock(t, newMutex(t, s.client, "/outer"))
		held, cancel := outer.Context(t.Context())
		defer cancel()
		done := lockLater(held, newMutex(t, s.client, "/busy"))
		synctest.Wait()
		deleteNode(t, operator, outer.Node())
		if err := must.Receive(t, done, "the end of the wait").err; !errors.Is(err, context.Canceled) || !errors.Is(err, lock.ErrLost) {
			t.Errorf("Lock: %v, want Canceled and the loss", err)
		}
		acquire, wait := spansNamed(s, "lock.acquire"), spansNamed(s, "lock.wait")
		if len(acquire) != 2 || attr(acquire[1], locktel.AttrOutcome) != "canceled" || attr(acquire[1], zktel.AttrErrorType) != "lock_lost" {
			t.Errorf("acquires %+v, want the second canceled by the loss", acquire)
		}
		if len(wait) != 1 || attr(wait[0], zktel.AttrErrorType) != "lock_lost" {
			t.Errorf("waits %+v, want one that was ended by the loss", wait)
		}
	})
}
