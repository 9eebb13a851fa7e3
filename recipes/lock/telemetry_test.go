package lock_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/zkenv"
)

var update = flag.Bool("update", false, "write the golden files of telemetry anew; then read the difference")

// A moment is what happens to a lock of service a, of which other services may
// want something too.
type scenario struct {
	name   string
	only   func(observedKind) bool // nil for all kinds
	happen func(t *testing.T, env *zkenv.Env, k observedKind, a, b *service)
}

func scenarios() []scenario {
	return []scenario{
		{"acquired", nil, acquired},
		{"queued", nil, queued},
		{"timed out", nil, timedOut},
		{"cancelled", nil, cancelled},
		{"refused", nil, refused},
		{"lost", nil, lost},
		{"lost unnoticed", nil, lostUnnoticed},
		{"re-entered", func(k observedKind) bool { return k.reentrant }, reentered},
		{"revoked", func(k observedKind) bool { return k.revocable }, revoked},
	}
}

// TestSpans holds the spans of all kinds of locks at all moments against
// testdata/spans: names, kinds, parents, status, attributes and links.
func TestSpans(t *testing.T) {
	t.Parallel()
	for _, kind := range observedKinds() {
		for _, m := range scenarios() {
			if m.only != nil && !m.only(kind) {
				continue
			}
			t.Run(kind.name+" "+m.name, func(t *testing.T) {
				t.Parallel()
				zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
					a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
					m.happen(t, env, kind, a, b)
					checkGolden(t, filepath.Join("testdata", "spans", kind.name, strings.ReplaceAll(m.name, " ", "-")+".txt"),
						ended(a, b).String())
				}, zkenv.Only("in virtual time every run has the same spans", zkenv.Embedded))
			})
		}
	}
}

func checkGolden(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644)))
		return
	}
	want := must.Get(os.ReadFile(file))(t)
	if got != string(want) {
		t.Errorf("%s (go test -run %s -update writes it anew):\n%s\nwant:\n%s", file, t.Name(), got, want)
	}
}

func named(kind observedKind) lock.Option { return recipes.WithName("orders-" + kind.name) }

// acquired: a gets a free lock, works under it and releases it.
func acquired(t *testing.T, _ *zkenv.Env, k observedKind, a, _ *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	err := lock.Do(ctx, k.newLocker(t, a.client, named(k)), func(ctx context.Context, _ *lock.Lease) error {
		a.work(ctx)
		return nil
	})
	request.End()
	if err != nil {
		t.Error(err)
	}
}

// queued: a waits until b releases the lock.
func queued(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	holding, theirs := b.request(t.Context())
	blocker := must.Get(k.block(t, b.client).Lock(holding))(t)
	env.Quiesce() // a semaphore mutex leaves its queue after the grant
	ctx, request := a.request(t.Context())
	waiting := lockLater(ctx, k.newLocker(t, a.client))
	env.Quiesce()
	mustRelease(t, blocker)
	theirs.End()
	mustRelease(t, granted(t, waiting, "the lock"))
	request.End()
}

// waitInVain has a wait for b's lock with a context that ends first.
func waitInVain(t *testing.T, env *zkenv.Env, k observedKind, a, b *service, end func(context.Context) (context.Context, func())) {
	t.Helper()
	blocker := mustLock(t, k.block(t, b.client))
	env.Quiesce()
	ctx, request := a.request(t.Context())
	ctx, stop := end(ctx)
	waiting := lockLater(ctx, k.newLocker(t, a.client))
	env.Quiesce()
	stop()
	if got := must.Receive(t, waiting, "the end of the wait"); got.err == nil {
		t.Error("got a lock that somebody else has")
	}
	request.End()
	mustRelease(t, blocker)
}

func timedOut(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	waitInVain(t, env, k, a, b, func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		return ctx, func() {
			<-ctx.Done()
			cancel()
		}
	})
}

func cancelled(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	waitInVain(t, env, k, a, b, func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel
	})
}

// refused: a tries what b has.
func refused(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	blocker := mustLock(t, k.block(t, b.client))
	env.Quiesce()
	ctx, request := a.request(t.Context())
	if _, err := k.newLocker(t, a.client).TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("try: %v, want ErrHeld", err)
	}
	request.End()
	mustRelease(t, blocker)
}

// lost: b, an operator, deletes the znode of a's lock.
func lost(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	lease := must.Get(k.newLocker(t, a.client, named(k)).Lock(ctx))(t)
	env.Quiesce() // the watch on the znode is set after a while
	must.OK(t, b.client.Delete(t.Context(), firstOf(lease).Node()))
	must.Receive(t, lease.Lost(), "the loss")
	env.Quiesce()
	if err := lease.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	request.End()
}

// lostUnnoticed: a's release finds that its znode is gone.
func lostUnnoticed(t *testing.T, _ *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	lease := must.Get(k.newLocker(t, a.client).Lock(ctx))(t)
	must.OK(t, b.client.Delete(t.Context(), firstOf(lease).Node()))
	if err := lease.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	request.End()
}

// reentered: a takes the lock a second and a third time while it has it.
func reentered(t *testing.T, _ *zkenv.Env, k observedKind, a, _ *service) {
	t.Helper()
	l := k.newLocker(t, a.client)
	ctx, request := a.request(t.Context())
	err := lock.Do(ctx, l, func(ctx context.Context, _ *lock.Lease) error {
		a.work(ctx)
		inner, span := a.tracer.Start(ctx, "below")
		defer span.End()
		return lock.Do(inner, l, func(ctx context.Context, _ *lock.Lease) error {
			return lock.Do(ctx, l, func(ctx context.Context, _ *lock.Lease) error {
				a.work(ctx)
				return nil
			})
		})
	})
	request.End()
	if err != nil {
		t.Error(err)
	}
}

// revoked: b requests a's release, and a releases.
func revoked(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	released := make(chan error, 1)
	l := k.newLocker(t, a.client, recipes.WithRevocation(func(lease *lock.Lease) { released <- lease.Release(context.Background()) }))
	ctx, request := a.request(t.Context())
	lease := must.Get(l.Lock(ctx))(t)
	env.Quiesce()
	must.OK(t, lock.Revoke(t.Context(), b.client, firstOf(lease).Node()))
	if err := must.Receive(t, released, "the release"); err != nil {
		t.Error(err)
	}
	request.End()
}

// An observedKind is a kind of lock, as the tests of telemetry use it.
type observedKind struct {
	name      string
	newLocker func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker
	blocker   func(t testing.TB, c *framework.Client) lock.Locker // what keeps others from it; nil for its own kind
	reentrant bool
	revocable bool
}

// block returns what c can keep others from the lock with.
func (k observedKind) block(t testing.TB, c *framework.Client) lock.Locker {
	t.Helper()
	if k.blocker != nil {
		return k.blocker(t, c)
	}
	return k.newLocker(t, c)
}

func observedKinds() []observedKind {
	const path = "/locks/observed"
	names := map[string]string{ // of the golden files
		"mutex": "mutex", "read side": "read", "write side": "write", "semaphore mutex": "semaphore_mutex",
	}
	var all []observedKind
	for _, k := range kinds {
		if names[k.name] == "" {
			continue
		}
		observed := observedKind{name: names[k.name], reentrant: k.reentrant, revocable: k.callbacks}
		observed.newLocker = func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
			return k.lock(t, c, path, opts...)
		}
		observed.blocker = func(t testing.TB, c *framework.Client) lock.Locker { return k.rivalOf(t, c, path) }
		all = append(all, observed)
	}
	return append(all, observedKind{
		name: "unfair_mutex",
		newLocker: func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
			return newUnfairMutex(t, c, path, opts...)
		},
	}, observedKind{
		name: "multi", reentrant: true,
		newLocker: func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
			return newMulti(t, newMutex(t, c, path+"/a", opts...), newMutex(t, c, path+"/b", opts...))
		},
		blocker: func(t testing.TB, c *framework.Client) lock.Locker { return newMutex(t, c, path+"/a") },
	})
}

// A service is one process's client with all its telemetry.
type service struct {
	name   string
	client *framework.Client
	spans  *tracetest.InMemoryExporter
	tracer trace.Tracer
	reader *sdkmetric.ManualReader
	logs   *observer.ObservedLogs
}

// newService returns a service whose client connect makes.
func newService(name string, connect func(...framework.Option) *framework.Client) *service {
	s := &service{name: name, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	core, logs := observer.New(zap.DebugLevel)
	s.tracer, s.logs = tracers.Tracer("service"), logs
	s.client = connect(
		framework.WithTracerProvider(tracers),
		framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))),
		framework.WithLogger(zap.New(core)))
	return s
}

// serviceIn returns a service of the environment.
func serviceIn(t testing.TB, env *zkenv.Env, name string) *service {
	t.Helper()
	return newService(name, func(opts ...framework.Option) *framework.Client { return env.Client(t, opts...) })
}

// request returns a context with the span of a request that the service serves.
func (s *service) request(ctx context.Context) (context.Context, trace.Span) {
	return s.tracer.Start(ctx, "request")
}

// work makes a span as what runs under a lock would.
func (s *service) work(ctx context.Context) {
	_, span := s.tracer.Start(ctx, "work")
	span.End()
}

// measured returns the metrics of the scope of locks, in the order of their names.
func (s *service) measured(t testing.TB) metricdata.ScopeMetrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	must.OK(t, s.reader.Collect(t.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name == locktel.ScopeName {
			slices.SortFunc(scope.Metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
			return scope
		}
	}
	return metricdata.ScopeMetrics{}
}

// A forest is the spans of some services, to be printed.
type spanTree struct {
	owner    map[trace.SpanID]string // the service
	byID     map[trace.SpanID]tracetest.SpanStub
	children map[trace.SpanID][]tracetest.SpanStub // that of the zero id are the roots
	changing []string                              // what differs from run to run
}

// ended returns the spans of the services that have ended, save those of the
// client's operations.
func ended(services ...*service) *spanTree {
	f := &spanTree{
		owner:    make(map[trace.SpanID]string),
		byID:     make(map[trace.SpanID]tracetest.SpanStub),
		children: make(map[trace.SpanID][]tracetest.SpanStub),
	}
	for _, s := range services {
		f.changing = append(f.changing, fmt.Sprintf("%#x", uint64(s.client.Session().ID)))
		for _, span := range s.spans.GetSpans() {
			if span.InstrumentationScope.Name != zktel.ScopeName {
				f.owner[span.SpanContext.SpanID()] = s.name
				f.byID[span.SpanContext.SpanID()] = span
				f.children[span.Parent.SpanID()] = append(f.children[span.Parent.SpanID()], span)
			}
		}
	}
	return f
}

// String prints the spans as trees: in the order of their beginning, each with
// its status, and below it its attributes and links.
func (f *spanTree) String() string {
	var out strings.Builder
	f.print(&out, trace.SpanID{}, "")
	return out.String()
}

func (f *spanTree) print(out *strings.Builder, parent trace.SpanID, indent string) {
	spans := f.children[parent]
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		return cmp.Or(cmp.Compare(f.owner[a.SpanContext.SpanID()], f.owner[b.SpanContext.SpanID()]),
			a.StartTime.Compare(b.StartTime), cmp.Compare(a.Name, b.Name),
			slices.Compare(printed(a.Attributes), printed(b.Attributes)))
	})
	for _, s := range spans {
		fmt.Fprintf(out, "%s%s (%s)", indent, f.title(s), s.SpanKind)
		if s.Status.Code != 0 {
			fmt.Fprintf(out, " %v: %s", s.Status.Code, s.Status.Description)
		}
		fmt.Fprintln(out)
		for _, a := range sorted(s.Attributes) {
			fmt.Fprintf(out, "%s    %s = %s\n", indent, a.Key, f.steady(a))
		}
		for _, l := range s.Links {
			target, ok := f.byID[l.SpanContext.SpanID()]
			title := "a span that is not there"
			if ok {
				title = f.title(target)
			}
			fmt.Fprintf(out, "%s    -> %s %v\n", indent, title, printed(l.Attributes))
		}
		f.print(out, s.SpanContext.SpanID(), indent+"  ")
	}
}

func (f *spanTree) title(s tracetest.SpanStub) string {
	return f.owner[s.SpanContext.SpanID()] + ": " + s.Name
}

// steady returns the value of an attribute, or a word for it where it differs from
// run to run.
func (f *spanTree) steady(a attribute.KeyValue) string {
	value := a.Value.String()
	switch {
	case a.Key == locktel.AttrFencingToken && a.Value.AsInt64() > 0:
		return "(a fence)"
	case a.Key == zktel.AttrSessionID && slices.Contains(f.changing, value):
		return "(its session)"
	}
	return value
}

func sorted(attributes []attribute.KeyValue) []attribute.KeyValue {
	return slices.SortedFunc(slices.Values(attributes), func(a, b attribute.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
}

func printed(attributes []attribute.KeyValue) []string {
	var out []string
	for _, a := range sorted(attributes) {
		out = append(out, string(a.Key)+"="+a.Value.String())
	}
	return out
}

// TestMetrics runs every event of all kinds of locks, and compares their metrics with the expected
// ones.
func TestMetrics(t *testing.T) {
	t.Parallel()
	for _, kind := range observedKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
				checkMetrics(t, "before anything", nil, measuredOf(t, a, kind.name))
				runAll(t, env, kind, a, b)
				checkMetrics(t, "after all", wantMetrics(kind), measuredOf(t, a, kind.name))
			}, zkenv.Only("in virtual time every run takes the same time", zkenv.Embedded))
		})
	}
}

// long is how long locks are held and waited for: in the middle of a bucket.
const long = 2 * time.Second

// runAll acquires a's lock in all ways: at once, after a wait, not in time, not by a try,
// and by re-entry. Then it loses the lock.
func runAll(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	l, blocker := k.newLocker(t, a.client, recipes.WithName("orders")), k.block(t, b.client)
	lease := mustLock(t, l)
	if k.reentrant {
		mustRelease(t, mustLock(t, l))
	}
	<-time.After(long)
	mustRelease(t, lease)

	theirs := mustLock(t, blocker)
	env.Quiesce() // a semaphore mutex leaves its queue after the grant
	if _, err := l.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("try: %v, want ErrHeld", err)
	}
	hurried, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if _, err := l.Lock(hurried); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("lock: %v, want DeadlineExceeded", err)
	}
	waiting := lockLater(t.Context(), l)
	<-time.After(long)
	if k.name != "multi" {
		checkMetrics(t, "while it waits", wantCount(k, 0, 1), counts(measuredOf(t, a, k.name)))
	}
	mustRelease(t, theirs)
	got := must.Receive(t, waiting, "the lock")
	if got.err != nil {
		t.Fatal(got.err)
	}
	if k.name != "multi" {
		checkMetrics(t, "while it holds", wantCount(k, 1, 0), counts(measuredOf(t, a, k.name)))
		checkMetrics(t, "before a loss", []metricdata.Metrics{wantLosses(k, 0)}, losses(measuredOf(t, a, k.name)))
	}
	<-time.After(long)
	must.OK(t, b.client.Delete(t.Context(), firstOf(got.lease).Node()))
	must.Receive(t, got.lease.Lost(), "the loss")
	env.Quiesce()
}

// wantLosses returns the counter of losses after some deletions of the holder's znode. Every reason is
// counted from 0 on.
func wantLosses(k observedKind, deleted int64) metricdata.Metrics {
	var points []metricdata.DataPoint[int64]
	for _, reason := range []string{
		"client_closed", "lease_deadline", "node_deleted", "other", "session_expired", "session_replaced", "suspended",
	} {
		p := metricdata.DataPoint[int64]{Attributes: attrsOf(k, attribute.String(locktel.AttrLossReason, reason))}
		if reason == "node_deleted" {
			p.Value = deleted
		}
		points = append(points, p)
	}
	return metricdata.Metrics{
		Name: locktel.MetricLosses, Unit: "{loss}", Description: "Lost locks.",
		Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: points},
	}
}

// wantMetrics returns the metrics of a after runAll. Those of a Multi are
// also its members', and only they are counted.
func wantMetrics(k observedKind) []metricdata.Metrics {
	bounds := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	acquires := metricdata.Metrics{
		Name: locktel.MetricAcquireDuration, Unit: "s", Description: "Duration of acquires, also failed ones.",
		Data: metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.HistogramDataPoint[float64]{
			point(bounds, 0, attrsOf(k, attribute.String(locktel.AttrOutcome, "acquired"), attribute.Bool(locktel.AttrContended, false))),
			point(bounds, long, attrsOf(k, attribute.String(locktel.AttrOutcome, "acquired"), attribute.Bool(locktel.AttrContended, true))),
			point(bounds, 0, attrsOf(k, attribute.String(locktel.AttrOutcome, "held"), attribute.Bool(locktel.AttrContended, true))),
			point(bounds, long, attrsOf(k, attribute.String(locktel.AttrOutcome, "timeout"), attribute.Bool(locktel.AttrContended, true),
				attribute.String("error.type", "deadline_exceeded"))),
		}},
	}
	bounds = append(bounds, 1800, 3600)
	holds := metricdata.Metrics{
		Name: locktel.MetricHoldDuration, Unit: "s", Description: "Duration of holds.",
		Data: metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.HistogramDataPoint[float64]{
			point(bounds, long, attrsOf(k)),
			point(bounds, long, attrsOf(k, attribute.String("error.type", "lock_lost"))),
		}},
	}
	if k.name == "multi" {
		return []metricdata.Metrics{acquires, holds}
	}
	return append([]metricdata.Metrics{acquires}, append(wantCount(k, 0, 0), holds, wantLosses(k, 1))...)
}

func wantCount(k observedKind, held, waiting int64) []metricdata.Metrics {
	return []metricdata.Metrics{{
		Name: locktel.MetricCount, Unit: "{lock}", Description: "Locks that this process holds or waits for.",
		Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.DataPoint[int64]{
			{Value: held, Attributes: attrsOf(k, attribute.String(locktel.AttrState, "held"))},
			{Value: waiting, Attributes: attrsOf(k, attribute.String(locktel.AttrState, "waiting"))},
		}},
	}}
}

// attrsOf returns the attributes of a measurement: a Multi has no name of its own.
func attrsOf(k observedKind, more ...attribute.KeyValue) attribute.Set {
	more = append(more, attribute.String(locktel.AttrType, k.name))
	if k.name != "multi" {
		more = append(more, attribute.String(locktel.AttrName, "orders"))
	}
	return attribute.NewSet(more...)
}

// point returns a point with one value, in the bucket of value.
func point(bounds []float64, value time.Duration, attrs attribute.Set) metricdata.HistogramDataPoint[float64] {
	buckets := make([]uint64, len(bounds)+1)
	i := 0
	for i < len(bounds) && value.Seconds() > bounds[i] {
		i++
	}
	buckets[i] = 1
	return metricdata.HistogramDataPoint[float64]{Count: 1, Bounds: bounds, BucketCounts: buckets, Attributes: attrs}
}

// measuredOf returns the metrics of the locks of one type, without the values
// within a bucket: the unfair mutex's pauses are random.
func measuredOf(t testing.TB, s *service, typ string) []metricdata.Metrics {
	t.Helper()
	ofType := func(attrs attribute.Set) bool {
		value, _ := attrs.Value(locktel.AttrType)
		return value.AsString() == typ
	}
	var found []metricdata.Metrics
	for _, m := range s.measured(t).Metrics {
		empty := false
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			var points []metricdata.HistogramDataPoint[float64]
			for _, p := range data.DataPoints {
				if ofType(p.Attributes) {
					p.Sum, p.Min, p.Max = 0, metricdata.Extrema[float64]{}, metricdata.Extrema[float64]{}
					points = append(points, p)
				}
			}
			data.DataPoints, empty = points, len(points) == 0
			m.Data = data
		case metricdata.Sum[int64]:
			var points []metricdata.DataPoint[int64]
			for _, p := range data.DataPoints {
				if ofType(p.Attributes) {
					points = append(points, p)
				}
			}
			data.DataPoints, empty = points, len(points) == 0
			m.Data = data
		}
		if !empty {
			found = append(found, m)
		}
	}
	return found
}

// counts returns those that say how many hold a lock, and how many wait for it.
func counts(metrics []metricdata.Metrics) []metricdata.Metrics {
	return metricsNamed(metrics, locktel.MetricCount)
}

func losses(metrics []metricdata.Metrics) []metricdata.Metrics {
	return metricsNamed(metrics, locktel.MetricLosses)
}

func metricsNamed(metrics []metricdata.Metrics, name string) []metricdata.Metrics {
	var found []metricdata.Metrics
	for _, m := range metrics {
		if m.Name == name {
			found = append(found, m)
		}
	}
	return found
}

func checkMetrics(t testing.TB, when string, want, got []metricdata.Metrics) {
	t.Helper()
	if !metricdatatest.AssertEqual(t, metricdata.ScopeMetrics{Metrics: want}, metricdata.ScopeMetrics{Metrics: got},
		metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()) {
		t.Errorf("%s", when)
	}
}

// lockLogs returns the lines of the logger of locks.
func lockLogs(s *service) []observer.LoggedEntry {
	return slices.DeleteFunc(s.logs.All(), func(e observer.LoggedEntry) bool { return !strings.HasSuffix(e.LoggerName, "lock") })
}

// spanOf returns the span that a line belongs to, by the context that it carries.
func spanOf(e observer.LoggedEntry) trace.SpanContext {
	for _, field := range e.Context {
		if ctx, ok := field.Interface.(context.Context); ok {
			return trace.SpanContextFromContext(ctx)
		}
	}
	return trace.SpanContext{}
}

// TestLogs holds the lines of a lock's moments against what they have to be.
func TestLogs(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
		kind := observedKinds()[0]
		queued(t, env, kind, a, b)
		lost(t, env, kind, a, b)
		type line struct {
			level  zapcore.Level
			text   string
			fields []string // in addition to those that all have
			span   string   // that it belongs to
		}
		want := []line{
			{zapcore.DebugLevel, "queued", []string{locktel.AttrQueuePosition}, "lock.acquire"},
			{zapcore.DebugLevel, "blocked", []string{locktel.AttrBlockedBy}, "lock.acquire"},
			{zapcore.DebugLevel, "acquired", []string{"duration", locktel.AttrContended, locktel.AttrFencingToken}, "lock.acquire"},
			{zapcore.DebugLevel, "released", []string{"duration"}, "lock.hold"},
			{zapcore.DebugLevel, "acquired", []string{"duration", locktel.AttrContended, locktel.AttrFencingToken, locktel.AttrName}, "lock.acquire orders-mutex"},
			{zapcore.WarnLevel, "lost", []string{"duration", "error", locktel.AttrLossReason, locktel.AttrName}, "lock.hold"},
		}
		names := make(map[trace.SpanID]string)
		for _, s := range a.spans.GetSpans() {
			names[s.SpanContext.SpanID()] = s.Name
		}
		var got []line
		for _, e := range lockLogs(a) {
			fields := e.ContextMap()
			if fields[locktel.AttrType] != "mutex" || fields[locktel.AttrPath] != "/locks/observed" {
				t.Errorf("%s: fields %v, want type and path", e.Message, fields)
			}
			delete(fields, locktel.AttrType)
			delete(fields, locktel.AttrPath)
			got = append(got, line{e.Level, e.Message, slices.Sorted(maps.Keys(fields)), names[spanOf(e).SpanID()]})
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("lines:\n%v\nwant:\n%v", got, want)
		}
	}, zkenv.Only("the lines are the same in all environments", zkenv.Embedded))
}

// TestNoSecrets runs everything with a digest credential and node data, and looks for them in all
// that leaves the process by telemetry.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const user, password, data = "operator", "s3cr3t-passw0rd", "s3cr3t-data"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		for _, k := range observedKinds() {
			secretive := func(name string) *service {
				return newService(name, func(opts ...framework.Option) *framework.Client {
					return env.Client(t, append(opts, framework.WithAuth("digest", []byte(user+":"+password)), framework.WithOperationSpans(true),
						framework.WithNamespace("secrets-"+k.name))...)
				})
			}
			a, b := secretive("a"), secretive("b")
			withData := k
			withData.newLocker = func(t testing.TB, c *framework.Client, opts ...lock.Option) lock.Locker {
				return k.newLocker(t, c, append(opts, recipes.WithData([]byte(data)))...)
			}
			for _, m := range scenarios() {
				if m.only == nil || m.only(k) {
					m.happen(t, env, withData, a, b)
				}
			}
			for _, s := range []*service{a, b} {
				told := everythingToldBy(t, s)
				if !strings.Contains(told, "/locks/observed") {
					t.Errorf("%s tells nothing of its locks", k.name)
				}
				for _, secret := range []string{password, data, base64.StdEncoding.EncodeToString([]byte(data))} {
					if i := strings.Index(told, secret); i >= 0 {
						t.Errorf("%s tells %q: …%s…", k.name, secret, told[max(0, i-200):i+len(secret)])
					}
				}
			}
		}
	}, zkenv.Only("what is told is the same in all environments", zkenv.Embedded))
}

// everythingToldBy returns all spans, metrics and log lines of a service as text.
func everythingToldBy(t testing.TB, s *service) string {
	t.Helper()
	var out bytes.Buffer
	for _, span := range s.spans.GetSpans() {
		fmt.Fprintf(&out, "%s %v %v %v %v\n", span.Name, span.Attributes, span.Status, span.Links, span.Events)
	}
	var metrics metricdata.ResourceMetrics
	must.OK(t, s.reader.Collect(t.Context(), &metrics))
	measured := must.Get(json.Marshal(metrics))(t)
	out.Write(measured)
	for _, e := range s.logs.All() {
		fields := must.Get(json.Marshal(e.ContextMap()))(t)
		fmt.Fprintf(&out, "%s %s %s\n", e.LoggerName, e.Message, fields)
	}
	return out.String()
}
