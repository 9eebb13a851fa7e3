package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// TestUnfairMutexNeverTakesItsFormerZnode releases with a dead context while the deletion
// can't be sent, and locks again with the same data, where the first reply is lost.
func TestUnfairMutexNeverTakesItsFormerZnode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/seat"
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		e := newUnfairMutex(t, c, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same")))
		first := mustLock(t, e)
		before := first.Fence()
		undeletable := []*fault.Handle{
			srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.CutBefore, Times: fault.Forever}),
			srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.CutBefore, Times: fault.Forever}),
		}
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Release(dead); !errors.Is(err, context.Canceled) {
			t.Fatalf("Release: %v, want context.Canceled", err)
		}
		if _, err := e.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("TryLock while the former znode exists: %v, want ErrHeld", err)
		}
		srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: path, Action: fault.DropReply})
		again := lockLater(t.Context(), e)
		await(10 * time.Second)
		select {
		case got := <-again:
			t.Fatalf("Lock returned while the former znode exists: %+v", got)
		default:
		}
		for _, rule := range undeletable {
			rule.Remove()
		}
		second := must.Receive(t, again, "the lock")
		if second.err != nil {
			t.Fatal(second.err)
		}
		if after := second.lease.Fence(); after <= before {
			t.Errorf("fence %d after %d", after, before)
		}
		mustHold(t, c, second.lease)
		mustRelease(t, second.lease)
	})
}

// TestUnfairMutexGateOutlastsARefusedDeletion keeps the client from deleting its znode.
func TestUnfairMutexGateOutlastsARefusedDeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const dir = "/seat-refused"
		srv := virtualServer(t)
		operator, c := virtualClient(t, srv), virtualClient(t, srv)
		noDelete := framework.WithACL(acl.Entry{Perms: acl.All &^ acl.Delete, Scheme: "world", ID: "anyone"})
		must.Get(operator.Create(t.Context(), dir, nil, noDelete))(t)
		e := newUnfairMutex(t, c, dir+"/lock")
		if err := mustLock(t, e).Release(t.Context()); !errors.Is(err, framework.ErrNoAuth) {
			t.Fatalf("Release: %v, want ErrNoAuth", err)
		}
		mustRefuse(t, e)
		must.Get(operator.SetACL(t.Context(), dir, acl.Open(), framework.AnyVersion))(t)
		mustRelease(t, mustLock(t, e)) // the deletion is repeated until it is allowed
	})
}

// TestUnfairMutexGateEndsWithTheClient has a call wait for the gate while the client closes.
func TestUnfairMutexGateEndsWithTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		e := newUnfairMutex(t, c, "/seat-closed")
		lease := mustLock(t, e)
		srv.Refuse()
		srv.Cut()
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lease.Release(dead); !errors.Is(err, context.Canceled) {
			t.Fatalf("Release: %v, want context.Canceled", err)
		}
		waiting := lockLater(t.Context(), e)
		synctest.Wait()
		must.OK(t, c.Close())
		if got := must.Receive(t, waiting, "the end of Lock"); !errors.Is(got.err, framework.ErrClosed) {
			t.Errorf("Lock: %+v, want ErrClosed", got)
		}
	})
}

// TestUnfairMutexGate_with_a_full_queue_of_deletions releases while the client has as many deletions
// pending as it keeps.
func TestUnfairMutexGate_with_a_full_queue_of_deletions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/seat-full"
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		e := newUnfairMutex(t, c, path, recipes.WithoutMetadata(), recipes.WithData([]byte("same")))
		lease := mustLock(t, e)
		srv.Refuse()
		srv.Cut()
		bound := c.InSession(c.Session().ID)
		for i := range 1 << 16 { // all that the client keeps
			bound.Discard("/none", framework.CreatedBy(int64(i+1)))
		}
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lease.Release(dead); !errors.Is(err, context.Canceled) {
			t.Fatalf("Release: %v, want context.Canceled", err)
		}
		if _, err := e.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("TryLock while the former znode exists: %v, want ErrHeld", err)
		}
		must.OK(t, c.Close())
	})
}

// A failingSpan is a span of the user's whose functions panic.
type failingSpan struct{ trace.Span }

func (failingSpan) SpanContext() trace.SpanContext { panic("by the test") }

func (failingSpan) IsRecording() bool { return true }

// TestUnfairMutexGate_after_a_panic has the metadata's traceparent panic.
func TestUnfairMutexGate_after_a_panic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		tracer := new(failingTracer)
		c := virtualClient(t, srv, framework.WithTracerProvider(tracer))
		e := newUnfairMutex(t, c, "/seat-panic")
		for range 2 {
			tracer.fails.Store(true)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("TryLock did not panic")
					}
				}()
				_, _ = e.TryLock(t.Context())
			}()
			tracer.fails.Store(false)
			mustRelease(t, mustTry(t, e))
		}
	})
}

// A failingTracer starts spans that panic, if it is to.
type failingTracer struct {
	noop.TracerProvider
	fails atomic.Bool
}

func (f *failingTracer) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return tracerOf{f: f}
}

type tracerOf struct {
	noop.Tracer
	f *failingTracer
}

func (tr tracerOf) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, span := tr.Tracer.Start(ctx, name, opts...)
	if tr.f.fails.Load() {
		span = failingSpan{span}
	}
	return ctx, span
}
