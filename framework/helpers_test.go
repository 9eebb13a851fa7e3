package framework_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m, zktest.WithLeakCheck()) }

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// connect returns a connected client, closed when the test has ended.
func connect(t testing.TB, servers string, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := newClient(t, servers, opts...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.OK(t, c.AwaitConnected(ctx))
	return c
}

// unreadable lets no client read a znode.
var unreadable = framework.WithACL(acl.Entry{Perms: acl.All &^ acl.Read, Scheme: "world", ID: "anyone"})

func newClient(t testing.TB, servers string, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append([]framework.Option{framework.WithSessionTimeout(4 * time.Second)}, opts...)
	c := must.Get(framework.NewClient(servers, opts...))(t)
	t.Cleanup(func() { c.Close() }) // tests of Close look at its error themselves
	return c
}

// mustCreate creates a znode, with its parents, and returns its path.
func mustCreate(t testing.TB, c *framework.Client, path, data string, opts ...framework.CreateOption) string {
	t.Helper()
	created := must.Get(c.Create(t.Context(), path, []byte(data), append(opts, framework.WithParents())...))(t)
	return created
}

// mustHold returns a secured hold on the client's session.
func mustHold(t testing.TB, c *framework.Client) *framework.SessionHold {
	t.Helper()
	h, err := c.HoldSession(t.Context())
	if err == nil {
		err = h.Secure(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Release)
	return h
}

// await fails the test unless ch is closed soon.
func await(t testing.TB, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// wantErr fails the test unless err matches all of targets, of which nil means no error.
func wantErr(t testing.TB, what string, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("%s: error %v, want one that matches %v", what, err, target)
		}
	}
}

// check reports an error, on any goroutine.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func wantEqual[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func wantList[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func wantBetween[T cmp.Ordered](t testing.TB, what string, got, least, most T) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// wantText fails the test unless err has the parts in its text.
func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %q in it", err, part)
		}
	}
}

// wantOpen fails the test if ch is closed.
func wantOpen(t testing.TB, ch <-chan struct{}, why string) {
	t.Helper()
	select {
	case <-ch:
		t.Error(why)
	default:
	}
}

// wantWithin fails the test if more than limit has passed since start.
func wantWithin(t testing.TB, start time.Time, limit time.Duration) {
	t.Helper()
	if took := time.Since(start); took > limit {
		t.Errorf("it took %v, want at most %v", took, limit)
	}
}

func wantExists(t testing.TB, c *framework.Client, path string, want bool) {
	t.Helper()
	if _, ok, err := c.Exists(t.Context(), path); err != nil || ok != want {
		t.Errorf("%s exists: %v, %v; want %v", path, ok, err, want)
	}
}

// wantStat fails the test unless the znode has the Stat that Create returned.
func wantStat(t testing.TB, c *framework.Client, path string, created framework.Stat) {
	t.Helper()
	if found, ok, err := c.Exists(t.Context(), path); err != nil || !ok || found != created {
		t.Errorf("Create returned %+v, Exists %+v (%v, %v)", created, found, ok, err)
	}
}

func wantData(t testing.TB, c *framework.Client, path, want string) {
	t.Helper()
	if data, _, err := c.Get(t.Context(), path); err != nil || string(data) != want {
		t.Errorf("data of %s: %q, %v; want %q", path, data, err, want)
	}
}

// background calls fn on a goroutine of its own, and returns the channel of its error.
func background(fn func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return done
}

// disconnect has a server or a proxy refuse connections and end those that it has.
func disconnect(from interface{ Refuse() }) {
	from.Refuse()
	switch from := from.(type) {
	case interface{ Cut() }:
		from.Cut()
	case interface{ Cut() int }:
		from.Cut()
	}
}

// runSynctest runs a subtest in virtual time.
func runSynctest(t *testing.T, name string, fn func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, fn) })
}

// children returns the sorted names of a znode's children.
func children(t testing.TB, c *framework.Client, path string) []string {
	t.Helper()
	names, _ := must.Get2(c.Children(t.Context(), path))(t)
	slices.Sort(names)
	return names
}

// A trail records the states that a client goes through.
type trail struct {
	mu      sync.Mutex
	changes []framework.StateChange
	times   []time.Time
}

func (tr *trail) add(change framework.StateChange) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.changes = append(tr.changes, change)
	tr.times = append(tr.times, time.Now())
}

func (tr *trail) list() []framework.StateChange {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.changes)
}

func (tr *trail) states() []framework.State {
	var states []framework.State
	for _, change := range tr.list() {
		states = append(states, change.To)
	}
	return states
}

// await waits until the client has gone through n states.
func (tr *trail) await(t testing.TB, want ...framework.State) {
	t.Helper()
	zktest.Eventually(t, patience, "states", func() bool { return len(tr.states()) >= len(want) })
	if got := tr.states(); !slices.Equal(got, want) {
		t.Fatalf("states %v, want %v", got, want)
	}
}

// last returns the latest change to a state.
func (tr *trail) last(to framework.State) framework.StateChange {
	for _, change := range slices.Backward(tr.list()) {
		if change.To == to {
			return change
		}
	}
	return framework.StateChange{}
}

// A gate holds dials back while it is shut.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // closed when the gate opens; nil while it is open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed)
	g.closed = nil
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed != nil
}

// A dialFunc connects a client to addr.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed == nil {
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// fresh returns a path that no other run of the test uses.
func fresh(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/%s-%08x", strings.ReplaceAll(t.Name(), "/", "-"), rand.Uint32())
}

// traces keeps the spans that end.
type traces struct {
	spans    *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
}

func newTraces() *traces {
	spans := tracetest.NewInMemoryExporter()
	return &traces{spans, sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}
}

// caller returns a context with a span, which ends with the test.
func (tr *traces) caller(t testing.TB) context.Context {
	t.Helper()
	ctx, span := tr.provider.Tracer("test").Start(t.Context(), "caller")
	t.Cleanup(func() { span.End() })
	return ctx
}

// take returns the spans that ended since it was last called, one per line:
//
//	operation (parent, status: description) key=value …
//
// It checks and leaves out the attributes that all spans of c have: kind, scope, system,
// namespace, server and session. Paths are those of c. The parent is the caller if it is the span
// in ctx.
func (tr *traces) take(t testing.TB, ctx context.Context, c *framework.Client) string { //nolint:revive // t comes first in tests
	t.Helper()
	stubs := tr.spans.GetSpans()
	tr.spans.Reset()
	var out strings.Builder
	for _, s := range stubs {
		checkSpan(t, s)
		parent := "root"
		if s.Parent.IsValid() && s.Parent.Equal(trace.SpanContextFromContext(ctx)) {
			parent = "caller"
		} else if s.Parent.IsValid() {
			parent = "stranger"
		}
		status := strings.ToLower(s.Status.Code.String())
		if s.Status.Description != "" {
			status += ": " + strings.ReplaceAll(s.Status.Description, strings.TrimSuffix(c.AbsolutePath("/"), "/")+"/", "/")
		}
		operation, _, _ := strings.Cut(s.Name, " ")
		fmt.Fprintf(&out, "%s (%s, %s)", operation, parent, status)
		rest := uncommon(t, c, s)
		for _, key := range slices.Sorted(maps.Keys(rest)) {
			fmt.Fprintf(&out, " %s=%s", key, rest[key])
		}
		out.WriteString("\n")
	}
	return out.String()
}

func checkSpan(t testing.TB, s tracetest.SpanStub) {
	t.Helper()
	scope := s.InstrumentationScope
	if scope.Name != zktel.ScopeName || scope.Version == "" || scope.SchemaURL != semconv.SchemaURL {
		t.Errorf("span %s is of scope %+v", s.Name, scope)
	}
	if s.SpanKind != trace.SpanKindClient || len(s.Events)+len(s.Links) > 0 {
		t.Errorf("span %s is of kind %v and has events %v and links %v", s.Name, s.SpanKind, s.Events, s.Links)
	}
}

// uncommon checks the attributes that all spans have, and returns the rest.
func uncommon(t testing.TB, c *framework.Client, s tracetest.SpanStub) map[string]string {
	t.Helper()
	rest := make(map[string]string)
	for _, a := range s.Attributes {
		rest[string(a.Key)] = a.Value.String()
	}
	take := func(key string) string {
		defer delete(rest, key)
		return rest[key]
	}
	namespace := strings.TrimSuffix(c.AbsolutePath("/"), "/")
	wantEqual(t, "name", s.Name, strings.TrimSpace(take(zktel.AttrDBOperation)+" "+namespace))
	wantEqual(t, "system", take(zktel.AttrDBSystem), "zookeeper")
	wantEqual(t, "namespace", take(zktel.AttrDBNamespace), namespace)
	if id := take(zktel.AttrSessionID); id != "" {
		wantEqual(t, "session", id, fmt.Sprintf("%#x", c.Session().ID))
	}
	if host, port := take(zktel.AttrServerAddress), take(zktel.AttrServerPort); host == "" {
		rest[zktel.AttrServerAddress] = "none"
	} else if server := net.JoinHostPort(host, cmp.Or(port, fmt.Sprint(proto.DefaultPort))); !slices.Contains(c.Servers(), server) {
		t.Errorf("span %s names the server %s, want one of %v", s.Name, server, c.Servers())
	}
	if path, ok := rest[zktel.AttrNodePath]; ok {
		rest[zktel.AttrNodePath] = strings.TrimPrefix(path, namespace)
	}
	return rest
}

// meters keeps the metrics.
type meters struct {
	reader   *metric.ManualReader
	provider *metric.MeterProvider
}

func newMeters() *meters {
	reader := metric.NewManualReader()
	return &meters{reader, metric.NewMeterProvider(metric.WithReader(reader))}
}

// collect returns the metrics of the client's scope by their names.
func (m *meters) collect(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	must.OK(t, m.reader.Collect(context.WithoutCancel(t.Context()), &all))
	found := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != zktel.ScopeName || scope.Scope.Version == "" || scope.Scope.SchemaURL == "" {
			t.Errorf("metrics of scope %+v", scope.Scope)
		}
		for _, one := range scope.Metrics {
			found[one.Name] = one
		}
	}
	return found
}

// A notingPolicy calls note on the operation's goroutine before each pause that the policy in it decides on.
type notingPolicy struct {
	retry.Policy
	note func()
}

func (p notingPolicy) NewBackOff() backoff.BackOff {
	return notingBackOff{p.Policy.NewBackOff(), p.note}
}

type notingBackOff struct {
	backoff.BackOff
	note func()
}

func (n notingBackOff) NextBackOff() time.Duration {
	n.note()
	return n.BackOff.NextBackOff()
}
