package lock_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
)

// spansNamed returns the spans of a service that ended, by the name.
func spansNamed(s *service, name string) []tracetest.SpanStub {
	return slices.DeleteFunc(s.spans.GetSpans(), func(span tracetest.SpanStub) bool { return span.Name != name })
}

// attr returns the value of a span's attribute, as text.
func attr(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// TestTraceparentInTheNode looks for the trace of a lock's holder in its znode, in all
// environments. It expects none if the trace is not wanted or not recorded.
func TestTraceparentInTheNode(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		a := serviceIn(t, env, "a")
		cases := map[string]struct {
			client *framework.Client
			opts   []lock.Option
			want   bool
		}{
			"traced":           {a.client, nil, true},
			"switched off":     {a.client, []lock.Option{lock.WithoutTraceparent()}, false},
			"without metadata": {a.client, []lock.Option{recipes.WithoutMetadata()}, false},
			"nobody records":   {env.Client(t), nil, false},
		}
		for name, c := range cases {
			m := newMutex(t, c.client, "/traceparent/"+strings.ReplaceAll(name, " ", "-"), c.opts...)
			ctx, request := a.request(t.Context())
			lease := must.Get(m.Lock(ctx))(t)
			found, err := m.Participants(t.Context())
			if err != nil || len(found) != 1 {
				t.Fatalf("%s: participants: %v, %v", name, found, err)
			}
			trace := request.SpanContext().TraceID().String()
			switch got := found[0].Metadata; {
			case c.want && (got == nil || !strings.HasPrefix(got.Traceparent, "00-"+trace+"-")):
				t.Errorf("%s: metadata %+v, want a traceparent of trace %s", name, got, trace)
			case !c.want && got != nil && got.Traceparent != "":
				t.Errorf("%s: traceparent %s, want none", name, got.Traceparent)
			}
			mustRelease(t, lease)
			request.End()
		}
	})
}

// TestOperationsNestInTheirStep looks where the spans of the client's operations are.
func TestOperationsNestInTheirStep(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		a := serviceIn(t, env, "a")
		ctx, request := a.request(t.Context())
		mustDo(t, ctx, newMutex(t, a.client, "/nest"))
		request.End()
		for step, operation := range map[string]string{"lock.acquire": "create", "lock.release": "delete"} {
			parent := spansNamed(a, step)[0].SpanContext.SpanID()
			found := spansNamed(a, operation)
			if len(found) == 0 || slices.ContainsFunc(found, func(s tracetest.SpanStub) bool { return s.Parent.SpanID() != parent }) {
				t.Errorf("%s: %d spans, want at least one, and all below %s", operation, len(found), step)
			}
		}
	}, zkenv.Only("the spans are the same in all environments", zkenv.Embedded))
}

func mustDo(t testing.TB, ctx context.Context, l lock.Locker) { //nolint:revive // t comes first in tests
	t.Helper()
	must.OK(t, lock.Do(ctx, l, func(context.Context, *lock.Lease) error { return nil }))
}

// TestContextStaysInItsTrace derives contexts from a lease: those of the acquire's
// trace, or of none, carry the hold, and those of another trace stay there.
func TestContextStaysInItsTrace(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		a := serviceIn(t, env, "a")
		acquiring, first := a.request(t.Context())
		lease := must.Get(newMutex(t, a.client, "/context").Lock(acquiring))(t)
		later, second := a.request(t.Context())
		spanIn := func(parent context.Context) trace.SpanContext {
			ctx, cancel := lease.Context(parent)
			defer cancel()
			return trace.SpanContextFromContext(ctx)
		}
		same, none, other := spanIn(acquiring), spanIn(t.Context()), spanIn(later)
		mustRelease(t, lease)
		first.End()
		second.End()
		hold := spansNamed(a, "lock.hold")[0].SpanContext
		if !same.Equal(hold) || !none.Equal(hold) {
			t.Errorf("spans %v and %v in contexts of the same trace and of none, want the hold's, %v", same, none, hold)
		}
		if !other.Equal(second.SpanContext()) {
			t.Errorf("span %v in a context of another trace, want its own, %v", other, second.SpanContext())
		}
	}, zkenv.Only("the spans are the same in all environments", zkenv.Embedded))
}

// TestLossReasons loses locks for all reasons but the one that the tests of all
// kinds have: a deleted znode.
func TestLossReasons(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		opts []lock.Option
		lose func(*testing.T, *zkenv.Route, *service)
	}{
		"session_expired": {nil, func(t *testing.T, route *zkenv.Route, _ *service) { route.Expire(t) }},
		"lease_deadline":  {nil, func(_ *testing.T, route *zkenv.Route, _ *service) { route.Blackhole(zkproxy.Both) }},
		"suspended": {
			[]lock.Option{recipes.WithLossPolicy(lease.OnSuspend)},
			func(_ *testing.T, route *zkenv.Route, _ *service) { route.Cut() },
		},
		"client_closed": {nil, func(t *testing.T, _ *zkenv.Route, s *service) {
			wantErr(t, "close", s.client.Close(), nil)
		}},
	}
	for reason, c := range cases {
		t.Run(reason, func(t *testing.T) {
			inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
				route := env.Route(t)
				s := newService("s", func(opts ...framework.Option) *framework.Client { return route.Client(t, opts...) })
				lease := mustLock(t, newMutex(t, s.client, "/loss", c.opts...))
				c.lose(t, route, s)
				must.Receive(t, lease.Lost(), "the loss")
				env.Quiesce()
				hold := spansNamed(s, "lock.hold")
				if len(hold) != 1 || attr(hold[0], locktel.AttrLossReason) != reason || attr(hold[0], zktel.AttrErrorType) != "lock_lost" {
					t.Errorf("holds %+v, want one that was lost for the reason %s", hold, reason)
				}
			}, zkenv.Only("the reasons are the same in all environments, the times are not", zkenv.Embedded))
		})
	}
}

// TestALossOfAnotherLeaseIsNotTheReleases: a release ends because its context does, with another lease's loss
// as the cause. Its own lease was not lost.
func TestALossOfAnotherLeaseIsNotTheReleases(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route := env.Route(t)
		s := newService("s", func(opts ...framework.Option) *framework.Client { return route.Client(t, opts...) })
		l := mustLock(t, newMutex(t, s.client, "/released"))
		held := route.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.HoldReply})
		ctx, cancel := context.WithCancelCause(t.Context())
		released := later(func() error { return l.Release(ctx) })
		must.Receive(t, held.Hit(), "the deletion")
		cancel(&lease.LostError{Path: "/other", Cause: framework.ErrSessionDeadline})
		wantErr(t, "Release", must.Receive(t, released, "the end of Release"), context.Canceled)
		held.Release()
		env.Quiesce()
		if hold := spansNamed(s, "lock.hold"); len(hold) != 1 || attr(hold[0], locktel.AttrLossReason) != "" {
			t.Errorf("holds %+v, want one that was not lost", hold)
		}
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}

// TestPanicEndsTheAcquire has a user's function panic while Lock is about to return: no caller
// waits any more, and the spans say so.
func TestPanicEndsTheAcquire(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
		theirs := mustLock(t, newMutex(t, b.client, "/panic"))
		m := newMutex(t, a.client, "/panic", recipes.WithQueuePosition(func(position int) {
			if position == 0 {
				panic("the user's")
			}
		}))
		recovered := make(chan any)
		go func() {
			defer func() { recovered <- recover() }()
			_, _ = m.Lock(t.Context()) // it does not return
		}()
		env.Quiesce()
		mustRelease(t, theirs)
		if got := must.Receive(t, recovered, "the panic"); got != "the user's" {
			t.Errorf("recovered %v, want the user's panic", got)
		}
		acquires := spansNamed(a, "lock.acquire")
		if len(acquires) != 1 || attr(acquires[0], locktel.AttrOutcome) != "error" || len(spansNamed(a, "lock.wait")) != 1 {
			t.Errorf("acquires %+v, want one that failed, with its wait", acquires)
		}
		if left := a.present(t); left != nil {
			t.Errorf("after the panic: %v", left)
		}
	}, zkenv.Only("the spans are the same in all environments", zkenv.Embedded))
}

// TestReentryCostsNothingMore counts the allocations of a re-entry: the lease is the only one, and an event if a
// span records the hold.
func TestReentryCostsNothingMore(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	addr, dialer := serverInProcess(t)
	clients := map[string]*framework.Client{
		"nobody listens": newClient(t, addr, dialer),
		"all is kept": newService("a", func(opts ...framework.Option) *framework.Client {
			return newClient(t, addr, append(opts, dialer)...)
		}).client,
	}
	const event = 4
	for name, c := range clients {
		most := map[string]float64{"nobody listens": 1, "all is kept": 1 + event}[name]
		m := newMutex(t, c, "/cost")
		for kind, ctx := range map[string]context.Context{
			"goroutine": t.Context(),
			"owner":     asOwner(t, "cost"),
		} {
			lease := must.Get(m.Lock(ctx))(t)
			allocs := testing.AllocsPerRun(1000, func() {
				again := must.Get(m.Lock(ctx))(t)
				must.OK(t, again.Release(ctx))
			})
			if allocs > most {
				t.Errorf("%s, by %s: %v allocations per re-entry, want %v", name, kind, allocs, most)
			}
			mustRelease(t, lease)
		}
	}
}
