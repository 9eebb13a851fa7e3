package lock_test

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
)

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
			if err := s.client.Close(); err != nil {
				t.Error(err)
			}
		}},
	}
	for reason, c := range cases {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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

// TestReleaseThatIsNotConfirmed releases with a context that has ended: the release
// has failed as far as it knows, and the lock was not lost.
func TestReleaseThatIsNotConfirmed(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		a := serviceIn(t, env, "a")
		lease := mustLock(t, newMutex(t, a.client, "/unconfirmed"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lease.Release(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("release: %v, want Canceled", err)
		}
		release, hold := spansNamed(a, "lock.release")[0], spansNamed(a, "lock.hold")[0]
		if attr(release, zktel.AttrErrorType) != "canceled" || release.Status.Description == "" {
			t.Errorf("release %+v, want it to have failed", release)
		}
		if attr(hold, zktel.AttrErrorType) != "" || attr(hold, locktel.AttrLossReason) != "" {
			t.Errorf("hold %+v, want it to have ended well", hold)
		}
	}, zkenv.Only("the spans are the same in all environments", zkenv.Embedded))
}

// TestPanicEndsTheAcquire has a user's function panic while Lock is about to return: no caller
// waits any more, and the spans say so.
func TestPanicEndsTheAcquire(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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
		for _, m := range counts(measuredOf(t, a, "mutex")) {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				if p.Value != 0 {
					t.Errorf("%v: %d, want 0", p.Attributes.ToSlice(), p.Value)
				}
			}
		}
	}, zkenv.Only("the spans are the same in all environments", zkenv.Embedded))
}

// A stuck is a processor of spans that does not come back from the end of a hold.
type stuck struct {
	sdktrace.SpanProcessor
	until chan struct{}
}

func (s stuck) OnEnd(span sdktrace.ReadOnlySpan) {
	if span.Name() == "lock.hold" {
		<-s.until
	}
}

// TestSlowTelemetryDelaysNoLoss loses several locks of a client whose spans go nowhere.
func TestSlowTelemetryDelaysNoLoss(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, until := env.Route(t), make(chan struct{})
		slow := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(stuck{tracetest.NewSpanRecorder(), until}))
		c := route.Client(t, framework.WithTracerProvider(slow))
		t.Cleanup(func() { close(until) }) // before the client is closed
		leases := []*lock.Lease{
			mustLock(t, newMutex(t, c, "/slow/a")),
			mustLock(t, newUnfairMutex(t, c, "/slow/b")),
			mustLock(t, newMulti(t, newMutex(t, c, "/slow/c"), newMutex(t, c, "/slow/d"))),
		}
		route.Expire(t)
		for _, lease := range leases {
			must.Receive(t, lease.Lost(), "the loss of "+lease.Path())
		}
	}, zkenv.Only("the order of things is the same in all environments", zkenv.Embedded))
}
