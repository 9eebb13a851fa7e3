package framework_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
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

var update = flag.Bool("update", false, "write the golden files of telemetry anew; then read the difference")

// checkGolden compares what telemetry tells with a file of testdata/telemetry.
func checkGolden(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "telemetry", strings.ReplaceAll(name, " ", "-")+".txt")
	if *update {
		must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644)))
		return
	}
	if want := string(must.Get(os.ReadFile(file))(t)); got != want {
		t.Errorf("%s (go test -run %s -update writes it anew):\n%s\nwant:\n%s", file, t.Name(), got, want)
	}
}

// text returns the metrics of the names with all their points, times and exemplars aside.
func (m *meters) text(t testing.TB, names ...string) string {
	t.Helper()
	var out strings.Builder
	all := m.collect(t)
	for _, name := range names {
		one, ok := all[name]
		if !ok {
			fmt.Fprintf(&out, "%s: none\n", name)
			continue
		}
		if one.Description == "" {
			t.Errorf("%s has no description", name)
		}
		kind, points := "", []string(nil)
		add := func(attributes attribute.Set, format string, args ...any) {
			points = append(points, fmt.Sprintf("  %s: "+format+"\n", append([]any{attributes.Encoded(attribute.DefaultEncoder())}, args...)...))
		}
		switch data := one.Data.(type) {
		case metricdata.Histogram[float64]:
			kind = fmt.Sprintf("%v histogram", data.Temporality)
			for _, p := range data.DataPoints {
				least, _ := p.Min.Value()
				most, _ := p.Max.Value()
				add(p.Attributes, "%d, from %v to %v, sum %v, %v up to %v", p.Count, least, most, p.Sum, p.BucketCounts, p.Bounds)
			}
		case metricdata.Sum[int64]:
			kind = fmt.Sprintf("%v sum, monotonic %v", data.Temporality, data.IsMonotonic)
			for _, p := range data.DataPoints {
				add(p.Attributes, "%d", p.Value)
			}
		}
		slices.Sort(points)
		fmt.Fprintf(&out, "%s in %s, %s\n%s", name, one.Unit, kind, strings.Join(points, ""))
	}
	return out.String()
}

// TestMetrics compares what clients measure with files of testdata/telemetry.
func TestMetrics(t *testing.T) {
	t.Parallel()
	for name, measure := range map[string]func(t *testing.T, env *zkenv.Env, ms *meters, provider framework.Option) string{
		"durations by operation and outcome": durations, "retries by operation and reason": retries,
		"states and transitions of all clients": statesAndTransitions, "watches and pending deletions": watchesAndDeletions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, env *zkenv.Env) {
				ms := newMeters()
				checkGolden(t, name, measure(t, env, ms, framework.WithMeterProvider(ms.provider)))
			})
		})
	}
}

func durations(t *testing.T, env *zkenv.Env, ms *meters, provider framework.Option) string {
	t.Helper()
	route := env.Route(t)
	mustCreate(t, env.Client(t), "/app", "")
	c := route.Client(t, provider, framework.WithNamespace("app"))
	for range 2 {
		must.OK(t, c.Sync(t.Context(), "/"))
	}
	wantErr(t, "get", last(c.Get(t.Context(), "/none")), framework.ErrNoNode)
	route.Rules().Add(fault.Rule{Op: fault.Sync, Action: fault.DelayRequest, Delay: 3 * time.Second})
	must.OK(t, c.Sync(t.Context(), "/"))
	host, _ := must.Get2(net.SplitHostPort(c.Servers()[0]))(t)
	env.Quiesce()
	return strings.ReplaceAll(ms.text(t, zktel.MetricOperationDuration), host, "server")
}

func retries(t *testing.T, env *zkenv.Env, ms *meters, provider framework.Option) string {
	t.Helper()
	route := env.Route(t)
	c := route.Client(t, provider)
	route.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore, Times: 2})
	must.Get2(c.Get(t.Context(), "/"))(t)
	env.Quiesce()
	return ms.text(t, zktel.MetricRetries)
}

func statesAndTransitions(t *testing.T, env *zkenv.Env, ms *meters, provider framework.Option) string {
	t.Helper()
	route := env.Route(t)
	report := func(when string) string {
		env.Quiesce() // the listeners are told first
		return when + "\n\n" + ms.text(t, zktel.MetricConnectionState, zktel.MetricTransitions, zktel.MetricSessionExpirations) + "\n"
	}
	var tr trail
	first, second := env.Client(t, provider), route.Client(t, provider, framework.WithStateListener(tr.add))
	reported := report("Two clients are connected")
	route.Expire(t)
	tr.await(t, connecting, connected, suspended, lost, connected)
	reported += report("The session of one expired")
	must.OK(t, errors.Join(first.Close(), second.Close()))
	return reported + report("Both are closed")
}

func watchesAndDeletions(t *testing.T, env *zkenv.Env, ms *meters, provider framework.Option) string {
	t.Helper()
	route := env.Route(t)
	report := func(when string) string {
		env.Quiesce()
		return when + "\n\n" + ms.text(t, zktel.MetricWatchCount, zktel.MetricBackgroundDeletes) + "\n"
	}
	c := route.Client(t, provider)
	for _, path := range []string{"/a", "/b"} {
		mustCreate(t, c, path, "")
		mustWatch(t, c, path, framework.WatchData)
		mustWatch(t, c, path, framework.WatchData) // shares the server's watch
	}
	reported := report("Two znodes have two watches each")
	held := route.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.HoldRequest})
	c.Discard("/a")
	c.Discard("/b")
	await(t, held.Hit(), "the first deletion")
	reported += report("Both are to be deleted")
	held.Release()
	return reported + report("Both are deleted")
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

func wantSpans(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("spans\n%swant\n%s", got, want)
	}
}

// pauses are drawn, so how long attempts take differs.
var pauses = regexp.MustCompile(`in [\d.]+m?s`)

// TestSpans compares the spans of single operations with a file of testdata/telemetry.
func TestSpans(t *testing.T) {
	t.Parallel()
	sync := func(ctx context.Context, c *framework.Client) error { return c.Sync(ctx, "/") }
	for name, tc := range map[string]struct {
		opts []framework.Option
		rule fault.Rule
		call func(ctx context.Context, c *framework.Client) error
	}{
		"retries are in one span that counts them": {
			nil,
			fault.Rule{Op: fault.GetData, Action: fault.CutBefore, Times: 2},
			func(ctx context.Context, c *framework.Client) error { return last(c.Get(ctx, "/")) },
		},
		"a span reports the last attempt": {
			[]framework.Option{framework.WithRetry(retry.Times(2, 0))},
			fault.Rule{Op: fault.SetData, Action: fault.CutBefore, Times: fault.Forever},
			func(ctx context.Context, c *framework.Client) error {
				return last(c.Set(ctx, "/", nil, framework.AnyVersion))
			},
		},
		"a span ends at a deadline": {nil, fault.Rule{Op: fault.Sync, Action: fault.HoldRequest}, sync},
		"a span ends with its context": {
			nil,
			fault.Rule{Op: fault.Sync, Action: fault.HoldRequest},
			func(ctx context.Context, c *framework.Client) error {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Millisecond, cancel)
				return sync(ctx, c)
			},
		},
		"an operation of a closed client": {nil, fault.Rule{Op: fault.Sync, Action: fault.Pass}, func(ctx context.Context, c *framework.Client) error {
			return errors.Join(c.Close(), sync(ctx, c))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, env *zkenv.Env) {
				tr, route := newTraces(), env.Route(t)
				c := route.Client(t, append(tc.opts, framework.WithTracerProvider(tr.provider))...)
				rule := route.Rules().Add(tc.rule)
				ctx, cancel := context.WithTimeout(tr.caller(t), time.Second)
				defer cancel()
				err := tc.call(ctx, c)
				rule.Release()
				spans := fmt.Sprintf("%s: %s", zktel.ErrorType(err), tr.take(t, ctx, c))
				checkGolden(t, name, pauses.ReplaceAllString(spans, "in some time"))
			})
		})
	}
}

func TestWhichOperationsHaveSpans(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		tr := newTraces()
		c := env.Client(t, framework.WithTracerProvider(tr.provider))
		sampled := tr.caller(t)
		unsampled := trace.ContextWithSpanContext(t.Context(), trace.SpanContextFromContext(sampled).WithTraceFlags(0))
		for _, of := range []struct {
			ctx  context.Context
			want string
		}{{sampled, "sync (caller, unset) zookeeper.node.path=/\n"}, {unsampled, ""}, {t.Context(), ""}} {
			must.OK(t, c.Sync(of.ctx, "/"))
			wantSpans(t, tr.take(t, of.ctx, c), of.want)
		}
		mustCreate(t, c, "/x", "")
		c.Discard("/x") // in the background
		env.Quiesce()
		wantSpans(t, tr.take(t, sampled, c), "")
	})
}

// Those of single sentinels are in their declarations: see TestTheDocumentationNamesEveryTypeOfError.
func TestErrorType(t *testing.T) {
	t.Parallel()
	inOp := func(err error) error { return &framework.OpError{Op: "get", Path: "/", Err: err} }
	for want, errs := range map[string][]error{
		"":                           {nil},
		"no_node":                    {framework.ErrNoNode, &framework.TxnError{Err: framework.ErrNoNode}},
		"node_exists":                {framework.ErrNodeExists, fmt.Errorf("%w, maybe (%w)", framework.ErrNodeExists, framework.ErrUnknownOutcome)},
		"no_children_for_ephemerals": {framework.ServerError(-108)},
		"invalid_acl":                {framework.ServerError(-114)},
		"bad_arguments":              {framework.ServerError(-8)},
		"reconfig_disabled":          {framework.ServerError(-123)},
		"reconfig_in_progress":       {framework.ServerError(-14)},
		"no_quorum":                  {framework.ServerError(-13)},
		"server_error":               {framework.ServerError(-1), framework.ServerError(-117)},
		"quota_exceeded":             {framework.ServerError(-125)},
		"connection_loss":            {framework.ErrUnknownOutcome, &retry.ExhaustedError{Err: framework.ErrUnknownOutcome}},
		"invalid_path":               {framework.ErrInvalidPath, framework.ValidatePath("x")},
		"invalid_argument":           {retry.ErrInvalid, retry.Validate(retry.Times(-1, 0))},
		"panic":                      {&listeners.PanicError{Value: framework.ErrNoNode}},
		"canceled":                   {context.Canceled, fmt.Errorf("%w: %w", framework.ErrUnknownOutcome, context.Canceled)},
		"deadline_exceeded":          {fmt.Errorf("%w: %w", framework.ErrNotConnected, context.DeadlineExceeded)},
		"connection_refused":         {fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})},
		"_OTHER":                     {errors.New("boom")},
	} {
		for _, err := range errs {
			if got := zktel.ErrorType(err); got != want {
				t.Errorf("ErrorType(%v) = %q, want %q", err, got, want)
			}
			if err == nil {
				continue
			}
			op := inOp(err)
			if got := zktel.ErrorType(op); got != want {
				t.Errorf("ErrorType(%v) = %q, want %q", op, got, want)
			}
			if got := semconv.ErrorType(op).Value.AsString(); got != want {
				t.Errorf("semconv.ErrorType(%v) = %q, want %q", op, got, want)
			}
		}
	}
}

// An observedCall is a call of an operation.
type observedCall struct {
	name string
	call func() error
}

// untraced returns ctx without its span.
func untraced(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.SpanContext{})
}

// observedCalls returns calls that follow one another on one tree. The latter half fails.
func observedCalls(ctx context.Context, c *framework.Client) []observedCall {
	ephemeral := []framework.CreateOption{framework.Ephemeral(), framework.Protected()}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return []observedCall{
		{"create", func() error { return last(c.Create(ctx, "/node", []byte("x"))) }},
		{"create with parents", func() error { return last(c.Create(ctx, "/a/b/c", nil, framework.WithParents())) }},
		{"create all", func() error {
			return last(c.CreateAll(ctx, framework.OpCreate("/p", nil, ephemeral...), framework.OpCreate("/q", nil, ephemeral...)))
		}},
		{"get", func() error { return last(c.Get(ctx, "/node")) }},
		{"exists", func() error { return last(c.Exists(ctx, "/node")) }},
		{"exists without a znode", func() error { return last(c.Exists(ctx, "/none")) }},
		{"children", func() error { return last(c.Children(ctx, "/node")) }},
		{"ACL", func() error { return last(c.ACL(ctx, "/node")) }},
		{"set ACL", func() error { return last(c.SetACL(ctx, "/node", acl.Open(), framework.AnyVersion)) }},
		{"sync", func() error { return c.Sync(ctx, "/node") }},
		{"set", func() error { return last(c.Set(ctx, "/node", nil, framework.AnyVersion)) }},
		{"create or set without a znode", func() error { return last(c.CreateOrSet(ctx, "/either", nil)) }},
		{"watch", func() error {
			w, err := c.Watch(ctx, "/node", framework.WatchData)
			if err == nil {
				w.Close()
			}
			return err
		}},
		{"txn", func() error {
			return last(c.Txn(ctx, framework.OpCheck("/node", framework.AnyVersion), framework.OpSet("/either", nil, framework.AnyVersion)))
		}},
		{"txn of one", func() error { return last(c.Txn(ctx, framework.OpDelete("/either", framework.AnyVersion))) }},
		{"delete", func() error { return c.Delete(ctx, "/node") }},
		{"idempotent delete without a znode", func() error { return c.Delete(ctx, "/node", framework.Idempotent()) }},
		{"delete tree", func() error {
			err := errors.Join(last(c.Create(untraced(ctx), "/tree", nil)), last(c.Create(untraced(ctx), "/tree/leaf", nil)))
			return errors.Join(err, c.DeleteTree(ctx, "/tree"))
		}},

		{"create of a znode that exists", func() error { return last(c.Create(ctx, "/", nil)) }},
		{"create without a parent", func() error { return last(c.Create(ctx, "/none/x", nil)) }},
		{"get without a znode", func() error { return last(c.Get(ctx, "/none")) }},
		{"children without a znode", func() error { return last(c.Children(ctx, "/none")) }},
		{"ACL without a znode", func() error { return last(c.ACL(ctx, "/none")) }},
		{"set ACL without a znode", func() error { return last(c.SetACL(ctx, "/none", acl.Open(), framework.AnyVersion)) }},
		{"set of another version", func() error { return last(c.Set(ctx, "/", nil, 7)) }},
		{"watch without a znode", func() error { return last(c.Watch(ctx, "/none", framework.WatchChildren)) }},
		{"txn with an operation that fails", func() error {
			return last(c.Txn(ctx, framework.OpCheck("/", framework.AnyVersion), framework.OpDelete("/none", framework.AnyVersion)))
		}},
		{"delete without a znode", func() error { return c.Delete(ctx, "/none") }},
		{"sync under a context that was cancelled", func() error { return c.Sync(ended, "/") }},
	}
}

// TestEachOperationHasASpan compares the spans with a file of testdata/telemetry. The span of an operation that
// failed says why.
func TestEachOperationHasASpan(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		tr, namespace := newTraces(), fresh(t)
		mustCreate(t, env.Client(t), namespace, "")
		c := env.Client(t, framework.WithTracerProvider(tr.provider), framework.WithNamespace(namespace[1:]))
		ctx := tr.caller(t)
		var all strings.Builder
		for _, of := range observedCalls(ctx, c) {
			kind := zktel.ErrorType(of.call())
			spans := tr.take(t, ctx, c)
			if kind != "" && !strings.Contains(spans, "error.type="+kind) {
				t.Errorf("%s: the error is of another type than the span: %s", of.name, kind)
			}
			fmt.Fprintf(&all, "%s: %s\n%s", of.name, kind, spans)
		}
		checkGolden(t, "operations", all.String())
	})
}
