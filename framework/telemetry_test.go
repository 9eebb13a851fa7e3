package framework_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// wantMetric fails the test unless the metric is as wanted, times and exemplars aside.
func wantMetric(t testing.TB, all map[string]metricdata.Metrics, want metricdata.Metrics) {
	t.Helper()
	got := all[want.Name]
	if got.Description == "" {
		t.Errorf("%s is missing or has no description", want.Name)
	}
	got.Description = ""
	metricdatatest.AssertEqual(t, want, got, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
}

// sum returns a sum whose points tell each value of the key apart.
func sum(name, unit, key string, monotonic bool, values map[string]int64) metricdata.Metrics {
	data := metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: monotonic}
	for value, n := range values {
		point := metricdata.DataPoint[int64]{Value: n}
		if key != "" {
			point.Attributes = attribute.NewSet(attribute.String(key, value))
		}
		data.DataPoints = append(data.DataPoints, point)
	}
	return metricdata.Metrics{Name: name, Unit: unit, Data: data}
}

// durations returns a point of the operations' durations: n that took d each.
func durations(n uint64, d time.Duration, attributes ...attribute.KeyValue) metricdata.HistogramDataPoint[float64] {
	bounds := []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
	counts := make([]uint64, len(bounds)+1)
	i := 0
	for i < len(bounds) && d.Seconds() > bounds[i] {
		i++
	}
	counts[i] = n
	return metricdata.HistogramDataPoint[float64]{
		Attributes: attribute.NewSet(append(attributes, attribute.String(zktel.AttrDBSystem, "zookeeper"))...),
		Count:      n, Bounds: bounds, BucketCounts: counts, Sum: float64(n) * d.Seconds(),
		Min: metricdata.NewExtrema(d.Seconds()), Max: metricdata.NewExtrema(d.Seconds()),
	}
}

func TestDurationsAreMeasuredByOperationAndOutcome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		ms, route := newMeters(), env.Route(t)
		mustCreate(t, env.Client(t), "/app", "")
		c := route.Client(t, framework.WithMeterProvider(ms.provider), framework.WithNamespace("app"))
		host, _, _ := net.SplitHostPort(c.Servers()[0])
		for range 2 {
			must.OK(t, c.Sync(t.Context(), "/"))
		}
		_, _, err := c.Get(t.Context(), "/none")
		wantErr(t, "get", err, framework.ErrNoNode)
		route.Rules().Add(fault.Rule{Op: fault.Sync, Action: fault.DelayRequest, Delay: 3 * time.Second})
		must.OK(t, c.Sync(t.Context(), "/"))

		operation := func(name string, more ...attribute.KeyValue) []attribute.KeyValue {
			return append(more, attribute.String(zktel.AttrDBOperation, name),
				attribute.String(zktel.AttrDBNamespace, "/app"), attribute.String(zktel.AttrServerAddress, host))
		}
		syncs := durations(2, zkenv.Latency, operation("sync")...)
		slow := (3*time.Second + zkenv.Latency).Seconds()
		syncs.Count++
		syncs.Sum += slow
		syncs.Max = metricdata.NewExtrema(slow)
		syncs.BucketCounts[7]++ // up to 5 s
		wantMetric(t, ms.collect(t), metricdata.Metrics{
			Name: zktel.MetricOperationDuration, Unit: "s",
			Data: metricdata.Histogram[float64]{
				Temporality: metricdata.CumulativeTemporality,
				DataPoints: []metricdata.HistogramDataPoint[float64]{syncs, durations(1, zkenv.Latency, operation("getData",
					attribute.String(zktel.AttrErrorType, "no_node"), attribute.String(zktel.AttrDBStatusCode, "-101"))...)},
			},
		})
	}, seesAll)
}

func TestRetriesAreCountedByOperationAndReason(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		ms, route := newMeters(), env.Route(t)
		c := route.Client(t, framework.WithMeterProvider(ms.provider))
		route.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore, Times: 2})
		must.Get2(c.Get(t.Context(), "/"))(t)
		point := metricdata.DataPoint[int64]{Value: 2, Attributes: attribute.NewSet(
			attribute.String(zktel.AttrDBSystem, "zookeeper"), attribute.String(zktel.AttrDBOperation, "getData"),
			attribute.String(zktel.AttrErrorType, "connection_loss"))}
		wantMetric(t, ms.collect(t), metricdata.Metrics{
			Name: zktel.MetricRetries, Unit: "{retry}",
			Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{point}},
		})
	}, seesAll)
}

// states returns the metric for so many clients in the states.
func states(counts map[string]int64) metricdata.Metrics {
	all := map[string]int64{"connecting": 0, "connected": 0, "suspended": 0, "lost": 0, "closed": 0, "auth_failed": 0, "read_only": 0}
	maps.Copy(all, counts)
	return sum(zktel.MetricConnectionState, "{client}", zktel.AttrConnectionState, false, all)
}

func TestStatesAndTransitionsOfAllClientsAreCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		ms, route := newMeters(), env.Route(t)
		provider := framework.WithMeterProvider(ms.provider)
		var tr trail
		first, second := env.Client(t, provider), route.Client(t, provider, framework.WithStateListener(tr.add))
		transitions, ends := make(map[string]int64), map[string]int64{"session_deadline": 0, "session_expired": 0, "session_replaced": 0}
		for _, s := range []string{"connecting", "suspended", "lost", "auth_failed", "read_only", "closed"} {
			transitions[s] = 0
		}
		all := ms.collect(t)
		wantMetric(t, all, states(map[string]int64{"connected": 2}))
		wantMetric(t, all, sum(zktel.MetricSessionExpirations, "{session}", zktel.AttrErrorType, true, ends))

		route.Expire(t)
		tr.await(t, framework.Connecting, framework.Connected, framework.Suspended, framework.Lost, framework.Connected)
		env.Quiesce() // the listeners are told first
		transitions["connected"], transitions["suspended"], transitions["lost"], ends["session_expired"] = 3, 1, 1, 1
		all = ms.collect(t)
		wantMetric(t, all, states(map[string]int64{"connected": 2}))
		wantMetric(t, all, sum(zktel.MetricTransitions, "{transition}", zktel.AttrConnectionState, true, transitions))
		wantMetric(t, all, sum(zktel.MetricSessionExpirations, "{session}", zktel.AttrErrorType, true, ends))

		must.OK(t, errors.Join(first.Close(), second.Close()))
		all = ms.collect(t)
		if _, ok := all[zktel.MetricConnectionState]; ok {
			t.Error("closed clients go on to report a state")
		}
		transitions["closed"] = 2
		wantMetric(t, all, sum(zktel.MetricTransitions, "{transition}", zktel.AttrConnectionState, true, transitions))
	}, seesAll)
}

func TestWatchesAndPendingDeletionsAreCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		ms, route := newMeters(), env.Route(t)
		c := route.Client(t, framework.WithMeterProvider(ms.provider))
		want := func(watches, deletes int64) {
			t.Helper()
			all := ms.collect(t)
			wantMetric(t, all, sum(zktel.MetricWatchCount, "{watch}", "", false, map[string]int64{"": watches}))
			wantMetric(t, all, sum(zktel.MetricBackgroundDeletes, "{node}", "", false, map[string]int64{"": deletes}))
		}
		for _, path := range []string{"/a", "/b"} {
			mustCreate(t, c, path, "")
			mustWatch(t, c, path, framework.WatchData)
			mustWatch(t, c, path, framework.WatchData) // shares the server's watch
		}
		want(2, 0)
		held := route.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.HoldRequest})
		c.Discard("/a")
		c.Discard("/b")
		await(t, held.Hit(), "the first deletion")
		want(2, 2)
		held.Release()
		env.Quiesce()
		want(0, 0)
	})
}

// A broken meter refuses every instrument.
type broken struct{ noop.MeterProvider }

func (broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ noop.Meter }

var errBroken = errors.New("no instrument")

func (brokenMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return noop.Float64Histogram{}, errBroken
}

func (brokenMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errBroken
}

// Not parallel: OpenTelemetry has one error handler.
func TestInstrument_that_fails_is_reported(t *testing.T) {
	var reported []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { reported = append(reported, err) }))
	defer otel.SetErrorHandler(before)
	c := newClient(t, "127.0.0.1:1", framework.WithMeterProvider(broken{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "sync", c.Sync(ctx, "/"), context.Canceled)
	check(t, c.Close())
	if len(reported) != 2 || !errors.Is(errors.Join(reported...), errBroken) {
		t.Errorf("reported %v, want the two that were refused", reported)
	}
}

// inBubble runs a test in virtual time, in which retries are as many as the policy says.
func inBubble(t *testing.T, test func(t *testing.T, env *zkenv.Env), opts ...zkenv.Option) {
	t.Helper()
	zkenv.ForEach(t, test, append(opts, zkenv.Only("durations and retries are exact in virtual time alone", zkenv.Embedded))...)
}

// seesAll is the option of a test that counts everything a client does. A client that gets acquainted
// with a server that lacks operations has done something before.
var seesAll = zkenv.AllOperations("it counts what a client does from its first request on")

func wantSpans(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("spans\n%swant\n%s", got, want)
	}
}

func TestRetriesAreInOneSpanThatCountsThem(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		tr, route := newTraces(), env.Route(t)
		c := route.Client(t, framework.WithTracerProvider(tr.provider))
		route.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore, Times: 2})
		ctx := tr.caller(t)
		must.Get2(c.Get(ctx, "/"))(t)
		wantSpans(t, tr.take(t, ctx, c), "getData (caller, unset) zookeeper.client.operation.retries=2 zookeeper.node.path=/\n")
	})
}

func TestSpan_reports_the_last_attempt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		tr, route := newTraces(), env.Route(t)
		c := route.Client(t, framework.WithTracerProvider(tr.provider), framework.WithRetry(retry.Times(2, 0)))
		route.Rules().Add(fault.Rule{Op: fault.SetData, Action: fault.CutBefore, Times: fault.Forever})
		ctx := tr.caller(t)
		_, err := c.Set(ctx, "/", nil, framework.AnyVersion)
		wantErr(t, "set", err, framework.ErrUnknownOutcome)
		wantSpans(t, tr.take(t, ctx, c), "setData (caller, error: "+reason(t, err)+
			") error.type=connection_loss zookeeper.client.operation.retries=2 zookeeper.node.path=/\n")
	})
}

// reason returns the text of what an OpError wraps.
func reason(t testing.TB, err error) string {
	t.Helper()
	op, ok := err.(*framework.OpError) //nolint:errorlint // what operations return
	if !ok {
		t.Fatalf("error %v of type %T", err, err)
	}
	return op.Err.Error()
}

func TestASpanEndsWithItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		tr, route := newTraces(), env.Route(t)
		c := route.Client(t, framework.WithTracerProvider(tr.provider))
		for _, of := range []struct{ errorType, text string }{
			{"deadline_exceeded", "outcome unknown: context deadline exceeded"},
			{"canceled", "outcome unknown: context canceled"},
		} {
			held := route.Rules().Add(fault.Rule{Op: fault.Sync, Action: fault.HoldRequest})
			ctx, cancel := context.WithTimeout(tr.caller(t), time.Second)
			if of.errorType == "canceled" {
				time.AfterFunc(time.Millisecond, cancel)
			}
			err := c.Sync(ctx, "/")
			cancel()
			held.Release()
			if got := framework.ErrorType(err); got != of.errorType {
				t.Errorf("error %v of type %s, want %s", err, got, of.errorType)
			}
			wantSpans(t, tr.take(t, ctx, c), "sync (caller, error: "+of.text+") error.type="+of.errorType+" zookeeper.node.path=/\n")
		}
	})
}

func TestWhichOperationsHaveSpans(t *testing.T) {
	t.Parallel()
	const ofCaller, ofRoot = "sync (caller, unset) zookeeper.node.path=/\n", "sync (root, unset) zookeeper.node.path=/\n"
	for _, tc := range []struct {
		name                          string
		opts                          []framework.Option
		inTrace, unsampled, elsewhere string
	}{
		{"by default those within a sampled span", nil, ofCaller, "", ""},
		{"none", []framework.Option{framework.WithOperationSpans(false)}, "", "", ""},
		{"all that the provider samples", []framework.Option{framework.WithOperationSpans(true)}, ofCaller, "", ofRoot},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, env *zkenv.Env) {
				tr := newTraces()
				c := env.Client(t, append(tc.opts, framework.WithTracerProvider(tr.provider))...)
				sampled := tr.caller(t)
				unsampled := trace.ContextWithSpanContext(t.Context(), trace.SpanContextFromContext(sampled).WithTraceFlags(0))
				for _, of := range []struct {
					ctx  context.Context
					want string
				}{{sampled, tc.inTrace}, {unsampled, tc.unsampled}, {t.Context(), tc.elsewhere}} {
					must.OK(t, c.Sync(of.ctx, "/"))
					wantSpans(t, tr.take(t, of.ctx, c), of.want)
				}
			}, seesAll)
		})
	}
}

func TestAGuaranteedDeletionHasASpanOfItsOwn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		tr := newTraces()
		c := env.Client(t, framework.WithTracerProvider(tr.provider), framework.WithOperationSpans(true))
		mustCreate(t, c, "/x", "")
		tr.spans.Reset()
		c.Discard("/x")
		env.Quiesce() // deletions are done in no fixed order
		c.Discard("/none")
		env.Quiesce()
		wantSpans(t, tr.take(t, t.Context(), c), "delete (root, unset) zookeeper.node.path=/x\n"+
			"delete (root, unset) db.response.status_code=-101 zookeeper.node.path=/none\n")
	})
}

func TestAnOperationOfAClosedClientHasASpan(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		tr := newTraces()
		c := env.Client(t, framework.WithTracerProvider(tr.provider))
		must.OK(t, c.Close())
		ctx := tr.caller(t)
		wantErr(t, "sync", c.Sync(ctx, "/"), framework.ErrClosed)
		wantSpans(t, tr.take(t, ctx, c), "sync (caller, error: client closed) error.type=client_closed server.address=none zookeeper.node.path=/\n")
	})
}

func TestErrorType(t *testing.T) {
	t.Parallel()
	inOp := func(err error) error { return &framework.OpError{Op: "get", Path: "/", Err: err} }
	for want, errs := range map[string][]error{
		"":                           {nil},
		"no_node":                    {framework.ErrNoNode, &framework.TxnError{Err: framework.ErrNoNode}},
		"node_exists":                {framework.ErrNodeExists, fmt.Errorf("%w, maybe (%w)", framework.ErrNodeExists, framework.ErrUnknownOutcome)},
		"bad_version":                {framework.ErrBadVersion},
		"not_empty":                  {framework.ErrNotEmpty},
		"no_children_for_ephemerals": {framework.ErrNoChildrenForEphemerals},
		"no_auth":                    {framework.ErrNoAuth},
		"auth_failed":                {framework.ErrAuthFailed},
		"invalid_acl":                {framework.ErrInvalidACL},
		"bad_arguments":              {framework.ErrBadArguments},
		"too_large":                  {framework.ErrTooLarge},
		"not_gzip":                   {framework.ErrNotGzip},
		"unsupported":                {framework.ErrUnsupported},
		"reconfig_disabled":          {framework.ErrReconfigDisabled},
		"reconfig_in_progress":       {framework.ErrReconfigInProgress},
		"no_quorum":                  {framework.ErrNoQuorum},
		"server_error":               {framework.ErrServer},
		"not_connected":              {framework.ErrNotConnected},
		"connection_loss":            {framework.ErrUnknownOutcome, &retry.ExhaustedError{Err: framework.ErrUnknownOutcome}},
		"session_ended":              {framework.ErrSessionEnded},
		"session_expired":            {framework.ErrSessionExpired},
		"session_deadline":           {framework.ErrSessionDeadline},
		"session_replaced":           {framework.ErrSessionReplaced},
		"client_closed":              {framework.ErrClosed},
		"invalid_path":               {framework.ErrInvalidPath, framework.ValidatePath("x")},
		"invalid_argument":           {retry.ErrInvalid, retry.Validate(retry.Times(-1, 0))},
		"panic":                      {&listeners.PanicError{Value: framework.ErrNoNode}},
		"canceled":                   {context.Canceled, fmt.Errorf("%w: %w", framework.ErrUnknownOutcome, context.Canceled)},
		"deadline_exceeded":          {fmt.Errorf("%w: %w", framework.ErrNotConnected, context.DeadlineExceeded)},
		"connection_refused":         {fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})},
		"_OTHER":                     {errors.New("boom")},
	} {
		for _, err := range errs {
			if got := framework.ErrorType(err); got != want {
				t.Errorf("ErrorType(%v) = %q, want %q", err, got, want)
			}
			if err == nil {
				continue
			}
			op := inOp(err)
			if got := framework.ErrorType(op); got != want {
				t.Errorf("ErrorType(%v) = %q, want %q", op, got, want)
			}
			if got := semconv.ErrorType(op).Value.AsString(); got != want {
				t.Errorf("semconv.ErrorType(%v) = %q, want %q", op, got, want)
			}
		}
	}
}

// An observedCall is a call of an operation and the spans that it has.
type observedCall struct {
	name string
	call func(ctx context.Context, c *framework.Client) error
	want string
}

// second returns a call's error.
func second[T any](_ T, err error) error { return err }

// untraced returns ctx without its span.
func untraced(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.SpanContext{})
}

// The calls follow one another on one tree.
func successes() []observedCall {
	return []observedCall{
		{"create", func(ctx context.Context, c *framework.Client) error {
			return second(c.Create(ctx, "/node", []byte("x")))
		}, "create (caller, unset) zookeeper.node.path=/node\n"},
		{"create with parents", func(ctx context.Context, c *framework.Client) error {
			return second(c.Create(ctx, "/a/b/c", nil, framework.WithParents()))
		}, "create (caller, unset) zookeeper.node.path=/a/b/c\n"},
		{"create all", func(ctx context.Context, c *framework.Client) error {
			options := []framework.CreateOption{framework.Ephemeral(), framework.Protected()}
			return second(c.CreateAll(ctx, framework.OpCreate("/p", nil, options...), framework.OpCreate("/q", nil, options...)))
		}, "multi (caller, unset) db.operation.batch.size=2\n"},
		{"get", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Get(ctx, "/node")
			return err
		}, "getData (caller, unset) zookeeper.node.path=/node\n"},
		{"exists", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Exists(ctx, "/node")
			return err
		}, "exists (caller, unset) zookeeper.node.path=/node\n"},
		{"exists without a znode", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Exists(ctx, "/none")
			return err
		}, "exists (caller, unset) zookeeper.node.path=/none\n"},
		{"children", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Children(ctx, "/node")
			return err
		}, "getChildren (caller, unset) zookeeper.node.path=/node\n"},
		{"ACL", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.ACL(ctx, "/node")
			return err
		}, "getACL (caller, unset) zookeeper.node.path=/node\n"},
		{"set ACL", func(ctx context.Context, c *framework.Client) error {
			return second(c.SetACL(ctx, "/node", acl.Open(), framework.AnyVersion))
		}, "setACL (caller, unset) zookeeper.node.path=/node\n"},
		{"sync", func(ctx context.Context, c *framework.Client) error { return c.Sync(ctx, "/node") }, "sync (caller, unset) zookeeper.node.path=/node\n"},
		{"set", func(ctx context.Context, c *framework.Client) error {
			return second(c.Set(ctx, "/node", nil, framework.AnyVersion))
		}, "setData (caller, unset) zookeeper.node.path=/node\n"},
		{"create or set without a znode", func(ctx context.Context, c *framework.Client) error {
			return second(c.CreateOrSet(ctx, "/either", nil))
		}, "setData (caller, unset) db.response.status_code=-101 zookeeper.node.path=/either\n" +
			"create (caller, unset) zookeeper.node.path=/either\n"},
		{"watch", func(ctx context.Context, c *framework.Client) error {
			w, err := c.Watch(ctx, "/node", framework.WatchData)
			if err == nil {
				w.Close()
			}
			return err
		}, "watch (caller, unset) zookeeper.node.path=/node\n"},
		{"txn", func(ctx context.Context, c *framework.Client) error {
			return second(c.Txn(ctx, framework.OpCheck("/node", framework.AnyVersion), framework.OpSet("/either", nil, framework.AnyVersion)))
		}, "multi (caller, unset) db.operation.batch.size=2\n"},
		{"txn of one", func(ctx context.Context, c *framework.Client) error {
			return second(c.Txn(ctx, framework.OpDelete("/either", framework.AnyVersion)))
		}, "multi (caller, unset)\n"},
		{"delete", func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/node") }, "delete (caller, unset) zookeeper.node.path=/node\n"},
		{"idempotent delete without a znode", func(ctx context.Context, c *framework.Client) error {
			return c.Delete(ctx, "/node", framework.Idempotent())
		}, "delete (caller, unset) db.response.status_code=-101 zookeeper.node.path=/node\n"},
		{"delete tree", func(ctx context.Context, c *framework.Client) error {
			for _, path := range []string{"/tree", "/tree/leaf"} {
				if _, err := c.Create(untraced(ctx), path, nil); err != nil {
					return err
				}
			}
			return c.DeleteTree(ctx, "/tree")
		}, "delete (caller, unset) db.response.status_code=-111 zookeeper.node.path=/tree\n" +
			"getChildren (caller, unset) zookeeper.node.path=/tree\n" +
			"delete (caller, unset) zookeeper.node.path=/tree/leaf\n" +
			"delete (caller, unset) zookeeper.node.path=/tree\n"},
	}
}

func failures() []observedCall {
	return []observedCall{
		{"create of a znode that exists", func(ctx context.Context, c *framework.Client) error {
			return second(c.Create(ctx, "/", nil))
		}, "create (caller, error: znode already exists) db.response.status_code=-110 error.type=node_exists zookeeper.node.path=\n"},
		{"create without a parent", func(ctx context.Context, c *framework.Client) error {
			return second(c.Create(ctx, "/none/x", nil))
		}, "create (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none/x\n"},
		{"get without a znode", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Get(ctx, "/none")
			return err
		}, "getData (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"children without a znode", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Children(ctx, "/none")
			return err
		}, "getChildren (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"ACL without a znode", func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.ACL(ctx, "/none")
			return err
		}, "getACL (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"set ACL without a znode", func(ctx context.Context, c *framework.Client) error {
			return second(c.SetACL(ctx, "/none", acl.Open(), framework.AnyVersion))
		}, "setACL (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"set of another version", func(ctx context.Context, c *framework.Client) error {
			return second(c.Set(ctx, "/", nil, 7))
		}, "setData (caller, error: znode has another version) db.response.status_code=-103 error.type=bad_version zookeeper.node.path=\n"},
		{"watch without a znode", func(ctx context.Context, c *framework.Client) error {
			return second(c.Watch(ctx, "/none", framework.WatchChildren))
		}, "watch (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"txn with an operation that fails", func(ctx context.Context, c *framework.Client) error {
			return second(c.Txn(ctx, framework.OpCheck("/", framework.AnyVersion), framework.OpDelete("/none", framework.AnyVersion)))
		}, "multi (caller, error: operation 1 (delete /none): znode does not exist) db.operation.batch.size=2 db.response.status_code=-101 error.type=no_node\n"},
		{"delete without a znode", func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/none") }, "delete (caller, error: znode does not exist) db.response.status_code=-101 error.type=no_node zookeeper.node.path=/none\n"},
		{"sync under a context that was cancelled", func(ctx context.Context, c *framework.Client) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return c.Sync(ctx, "/")
		}, "sync (caller, error: context canceled) error.type=canceled server.address=none zookeeper.node.path=\n"},
	}
}

// spansOf runs a test in a namespace of its own, with a client that makes spans.
func spansOf(t *testing.T, test func(t *testing.T, tr *traces, c *framework.Client)) {
	t.Helper()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		tr, namespace := newTraces(), fresh(t)
		mustCreate(t, env.Client(t), namespace, "")
		test(t, tr, env.Client(t, framework.WithTracerProvider(tr.provider), framework.WithNamespace(namespace[1:])))
	})
}

func TestEachOperationHasASpan(t *testing.T) {
	t.Parallel()
	spansOf(t, func(t *testing.T, tr *traces, c *framework.Client) {
		for _, of := range successes() {
			ctx := tr.caller(t)
			if err := of.call(ctx, c); err != nil {
				t.Errorf("%s: %v", of.name, err)
			}
			if got := tr.take(t, ctx, c); got != of.want {
				t.Errorf("%s has the spans\n%swant\n%s", of.name, got, of.want)
			}
		}
	})
}

func TestASpanSaysWhyItsOperationFailed(t *testing.T) {
	t.Parallel()
	spansOf(t, func(t *testing.T, tr *traces, c *framework.Client) {
		for _, of := range failures() {
			ctx := tr.caller(t)
			err := of.call(ctx, c)
			if err == nil {
				t.Errorf("%s: no error", of.name)
			}
			got := tr.take(t, ctx, c)
			if got != of.want {
				t.Errorf("%s has the spans\n%swant\n%s", of.name, got, of.want)
			}
			if kind := "error.type=" + framework.ErrorType(err); !strings.Contains(got, kind) {
				t.Errorf("%s: the error is of another type than the span: %s", of.name, kind)
			}
		}
	})
}
