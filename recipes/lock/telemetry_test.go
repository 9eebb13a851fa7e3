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
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

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

var update = flag.Bool("update", false, "write the golden files of telemetry anew; then read the difference")

// A scenario is what happens to a lock of service a, which service b may want or harm.
type scenario struct {
	name   string
	of     func(kind) bool // nil for all kinds
	happen func(t *testing.T, env *zkenv.Env, k kind, a, b *service)
}

func scenarios() []scenario {
	ofKind := func(name string) func(kind) bool { return func(k kind) bool { return k.name == name } }
	return []scenario{
		{"acquired", nil, acquired},
		{"queued", nil, queued},
		{"timed out", nil, timedOut},
		{"cancelled", nil, cancelled},
		{"refused", nil, refused},
		{"lost", nil, lost},
		{"lost unnoticed", nil, lostUnnoticed},
		{"re-entered", func(k kind) bool { return k.reentrant }, reentered},
		{"revoked", func(k kind) bool { return k.callbacks }, revoked},
		{"acquired by two of one owner", ofKind("mutex"), acquiredByTwo},
		{"release not confirmed", ofKind("mutex"), releaseNotConfirmed},
		{"upgrade refused", ofKind("read side"), upgradeRefused},
		{"queued in one process", ofKind("unfair mutex"), queuedInOneProcess},
		{"lost in other ways", ofKind("mutex"), lostInOtherWays},
		{"release ended by another loss", ofKind("mutex"), releaseEndedByAnotherLoss},
		{"outer lock lost", ofKind("mutex"), outerLockLost},
		{"panic at the grant", ofKind("mutex"), panicAtTheGrant},
		{"work in several traces", ofKind("mutex"), workInSeveralTraces},
	}
}

// observedKinds are those that go through the scenarios.
func observedKinds() []kind {
	all := kindsThat(func(k kind) bool { return k.name != "local" && k.name != "multi" })
	return append(all, kind{
		name: "multi", reentrant: true,
		lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
			return newMulti(t, newMutex(t, c, path+"/a", opts...), newMutex(t, c, path+"/b", opts...))
		},
		rival: func(t testing.TB, c *framework.Client, path string, _ ...lock.Option) lock.Locker {
			return newMutex(t, c, path+"/a")
		},
	})
}

// long is how long locks are held and waited for: in the middle of a bucket of the durations, and before a
// long wait is logged.
const long = 1500 * time.Millisecond

// TestTelemetry has each kind of lock go through each scenario, and compares what that tells with a file in
// testdata/telemetry: the spans with their kinds, parents, status, attributes and links, the lines of a's log
// with the spans that they belong to, and a's metrics. All that is reported has no secret.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	for _, k := range observedKinds() {
		for _, s := range scenarios() {
			if s.of != nil && !s.of(k) {
				continue
			}
			envSubtest(t, k.name+" "+s.name, func(t *testing.T, env *zkenv.Env) {
				a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
				s.happen(t, env, k, a, b)
				env.Quiesce()
				checkSecrets(t, a, b)
				got := "Spans\n\n" + ended(a, b).String() + "\nLog\n\n" + a.logged() + "\nMetrics\n\n" + a.measurements(t)
				file := strings.ReplaceAll(filepath.Join(k.name, s.name), " ", "-")
				checkGolden(t, filepath.Join("testdata", "telemetry", file+".txt"), got)
			}, zkenv.Only("in virtual time every run is told in the same way", zkenv.Embedded))
		}
	}
}

// What no telemetry contains.
const secretPassword, secretCredential, secretData = "s3cr3t-passw0rd", "operator:" + secretPassword, "s3cr3t-data"

// checkSecrets looks for a credential and the data of znodes in all that leaves the process by telemetry.
func checkSecrets(t testing.TB, services ...*service) {
	t.Helper()
	for _, s := range services {
		telemetry := everythingReportedBy(t, s)
		for _, secret := range []string{secretPassword, secretData, base64.StdEncoding.EncodeToString([]byte(secretData))} {
			if i := strings.Index(telemetry, secret); i >= 0 {
				t.Errorf("%s tells %q: …%s…", s.name, secret, telemetry[max(0, i-200):i+len(secret)])
			}
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

func named(k kind) lock.Option { return recipes.WithName("orders-" + k.name) }

// acquired: a gets a free lock, works under it and releases it.
func acquired(t *testing.T, _ *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	err := lock.Do(ctx, a.locker(t, k, named(k)), func(ctx context.Context, _ *lock.Lease) error {
		a.work(ctx)
		<-time.After(long)
		return nil
	})
	request.End()
	if err != nil {
		t.Error(err)
	}
}

// queued: a waits until b releases the lock.
func queued(t *testing.T, env *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	holding, theirs := b.request(t.Context())
	blocker := must.Get(k.rivalOf(t, b.client, observedPath).Lock(holding))(t)
	env.Quiesce() // a semaphore mutex leaves its queue after the grant
	ctx, request := a.request(t.Context())
	waiting := lockLater(ctx, a.locker(t, k))
	<-time.After(long)
	a.note(t, "while it waits")
	mustRelease(t, blocker)
	theirs.End()
	lease := granted(t, waiting, "the lock")
	<-time.After(long)
	a.note(t, "while it holds")
	mustRelease(t, lease)
	request.End()
}

// waitInVain has a wait for the blocker's lock with a context that ends first.
func waitInVain(t *testing.T, env *zkenv.Env, k kind, a *service, blocker *lock.Lease, end func(context.Context) (context.Context, func())) {
	t.Helper()
	env.Quiesce()
	ctx, request := a.request(t.Context())
	ctx, stop := end(ctx)
	waiting := lockLater(ctx, a.locker(t, k))
	<-time.After(long / 2)
	stop()
	if got := must.Receive(t, waiting, "the end of the wait"); got.Err == nil {
		t.Error("got a lock that somebody else has")
	}
	request.End()
	mustRelease(t, blocker)
}

// timedOut: an owner with a name is in the way, whose client has no telemetry. The span of the wait names the
// process and the owner, and has no link.
func timedOut(t *testing.T, env *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	theirs := mustLockAs(asOwner(t, "nightly"), t, k.rivalOf(t, env.Client(t), observedPath))
	waitInVain(t, env, k, a, theirs, func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithTimeout(ctx, long)
		return ctx, func() {
			<-ctx.Done()
			cancel()
		}
	})
}

func cancelled(t *testing.T, env *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	waitInVain(t, env, k, a, mustLock(t, k.rivalOf(t, b.client, observedPath)), func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, func() {
			<-time.After(long / 2)
			cancel()
		}
	})
}

// refused: a tries what b has.
func refused(t *testing.T, env *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	blocker := mustLock(t, k.rivalOf(t, b.client, observedPath))
	env.Quiesce()
	ctx, request := a.request(t.Context())
	wantErr(t, "try", errOf(a.locker(t, k).TryLock(ctx)), lock.ErrHeld)
	request.End()
	mustRelease(t, blocker)
}

// lost: b, an operator, deletes the znode of a's lock.
func lost(t *testing.T, env *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	lease := must.Get(a.locker(t, k, named(k)).Lock(ctx))(t)
	<-time.After(long) // the znode is watched by then
	must.OK(t, b.client.Delete(t.Context(), firstOf(lease).Node()))
	must.Receive(t, lease.Lost(), "the loss")
	env.Quiesce()
	wantErr(t, "release", lease.Release(ctx), lock.ErrLost)
	request.End()
}

// lostUnnoticed: a's release finds that its znode is gone.
func lostUnnoticed(t *testing.T, _ *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	lease := must.Get(a.locker(t, k).Lock(ctx))(t)
	must.OK(t, b.client.Delete(t.Context(), firstOf(lease).Node()))
	wantErr(t, "release", lease.Release(ctx), lock.ErrLost)
	request.End()
}

// reentered: a takes the lock a second and a third time while it has it.
func reentered(t *testing.T, _ *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	l := a.locker(t, k)
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
func revoked(t *testing.T, env *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	released := make(chan error, 1)
	l := a.locker(t, k, recipes.WithRevocation(func(lease *lock.Lease) { released <- lease.Release(context.Background()) }))
	ctx, request := a.request(t.Context())
	lease := must.Get(l.Lock(ctx))(t)
	env.Quiesce()
	must.OK(t, lock.Revoke(t.Context(), b.client, firstOf(lease).Node()))
	if err := must.Receive(t, released, "the release"); err != nil {
		t.Error(err)
	}
	request.End()
}

// acquiredByTwo: two goroutines of one owner wait for b's lock.
func acquiredByTwo(t *testing.T, env *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	theirs := mustLock(t, k.rivalOf(t, b.client, observedPath))
	owner := asOwner(t, "both")
	l := a.locker(t, k, named(k))
	var waiting []<-chan result
	for range 2 {
		waiting = append(waiting, lockLater(owner, l))
		env.Quiesce()
	}
	mustRelease(t, theirs)
	first, second := granted(t, waiting[0], "the lock"), granted(t, waiting[1], "the lock")
	mustRelease(t, first)
	mustRelease(t, second)
}

// releaseNotConfirmed: a releases with a context that has ended. The release has failed as far as a knows,
// and the lock is not lost.
func releaseNotConfirmed(t *testing.T, _ *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	lease := mustLock(t, a.locker(t, k))
	wantErr(t, "release", lease.Release(dead(t)), context.Canceled)
}

// upgradeRefused: a's reader asks for the write side.
func upgradeRefused(t *testing.T, _ *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	lease := mustLock(t, a.locker(t, k))
	wantErr(t, "lock", errOf(newReadWrite(t, a.client, lease.Path()).Write().Lock(t.Context())), lock.ErrUpgrade)
	mustRelease(t, lease)
}

// queuedInOneProcess: two calls of a contend. They wait for each other without a request, and are linked
// nevertheless.
func queuedInOneProcess(t *testing.T, env *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	l := a.locker(t, k)
	holding, request := a.request(t.Context())
	lease := must.Get(l.Lock(holding))(t)
	waiting := lockLater(t.Context(), l)
	env.Quiesce()
	mustRelease(t, lease)
	mustRelease(t, granted(t, waiting, "the lock"))
	request.End()
}

// lostInOtherWays: a's locks are lost for all reasons but a deleted znode.
func lostInOtherWays(t *testing.T, env *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	lose := func(policy lease.LossPolicy, harm func()) {
		t.Helper()
		must.OK(t, a.client.AwaitConnected(t.Context()))
		a.sessions = append(a.sessions, a.client.Session().ID)
		l := mustLock(t, a.locker(t, k, recipes.WithLossPolicy(policy)))
		<-time.After(long)
		harm()
		must.Receive(t, l.Lost(), "the loss")
		env.Quiesce()
		a.route.Heal()
	}
	lose(lease.AtDeadline, func() { a.route.Expire(t) })
	lose(lease.OnSuspend, func() { a.route.Cut() })
	lose(lease.AtDeadline, func() { a.route.Blackhole(zkproxy.Both) })
	<-time.After(time.Minute) // a new session
	lose(lease.AtDeadline, func() { must.OK(t, a.client.Close()) })
}

// releaseEndedByAnotherLoss: a's release ends because its context does, with another lease's loss as the cause. Its
// own lease was not lost.
func releaseEndedByAnotherLoss(t *testing.T, env *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	l := mustLock(t, a.locker(t, k))
	held := a.route.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.HoldReply})
	ctx, cancel := context.WithCancelCause(t.Context())
	released := later(func() error { return l.Release(ctx) })
	must.Receive(t, held.Hit(), "the deletion")
	cancel(&lease.LostError{Path: "/other", Cause: framework.ErrSessionDeadline})
	wantErr(t, "Release", must.Receive(t, released, "the end of Release"), context.Canceled)
	held.Release()
	env.Quiesce()
}

// outerLockLost: a waits for b's lock under another lock, and loses that. So the wait ends.
func outerLockLost(t *testing.T, env *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	theirs := mustLock(t, k.rivalOf(t, b.client, observedPath))
	outer := mustLock(t, newMutex(t, a.client, "/locks/outer"))
	held, cancel := outer.Context(t.Context())
	defer cancel()
	waiting := lockLater(held, a.locker(t, k))
	env.Quiesce()
	deleteNode(t, b.client, outer.Node())
	wantErr(t, "Lock", failed(t, waiting, "the end of the wait"), context.Canceled, lock.ErrLost)
	mustRelease(t, theirs)
}

// panicAtTheGrant: a user's function panics while a's Lock is about to return. No caller waits any more, and the
// spans say so.
func panicAtTheGrant(t *testing.T, env *zkenv.Env, k kind, a, b *service) {
	t.Helper()
	theirs := mustLock(t, k.rivalOf(t, b.client, observedPath))
	l := a.locker(t, k, recipes.WithQueuePosition(func(position int) {
		if position == 0 {
			panic("the user's")
		}
	}))
	recovered := make(chan any)
	go func() {
		defer func() { recovered <- recover() }()
		_, _ = l.Lock(t.Context()) // it does not return
	}()
	env.Quiesce()
	mustRelease(t, theirs)
	if got := must.Receive(t, recovered, "the panic"); got != "the user's" {
		t.Errorf("recovered %v, want the user's panic", got)
	}
	a.note(t, "after the panic")
}

// workInSeveralTraces: contexts of the acquire's trace, or of none, carry the hold, and one of another trace stays
// there.
func workInSeveralTraces(t *testing.T, _ *zkenv.Env, k kind, a, _ *service) {
	t.Helper()
	acquiring, first := a.request(t.Context())
	l := must.Get(a.locker(t, k).Lock(acquiring))(t)
	<-time.After(long)
	another, second := a.request(t.Context())
	for _, parent := range []context.Context{acquiring, t.Context(), another} {
		ctx, cancel := l.Context(parent)
		a.work(ctx)
		cancel()
	}
	mustRelease(t, l)
	first.End()
	second.End()
}

// A service is one process's client with all its telemetry.
type service struct {
	name   string
	client *framework.Client
	route  *zkenv.Route // of the client; nil for none
	spans  *tracetest.InMemoryExporter
	tracer trace.Tracer
	reader *sdkmetric.ManualReader
	logs   *observer.ObservedLogs
	notes  []string // see note

	sessions []int64 // that the client has had
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
	s.sessions = []int64{s.client.Session().ID}
	return s
}

// serviceIn returns a service of the environment, which authenticates.
func serviceIn(t testing.TB, env *zkenv.Env, name string) *service {
	t.Helper()
	route := env.Route(t)
	route.SetLatency(0)
	s := newService(name, func(opts ...framework.Option) *framework.Client {
		return route.Client(t, append(opts, framework.WithAuth("digest", []byte(secretCredential)))...)
	})
	s.route = route
	return s
}

// observedPath is the path of the locks in scenarios.
const observedPath = "/locks/observed"

// locker returns a lock of the kind, whose znodes have data.
func (s *service) locker(t testing.TB, k kind, opts ...lock.Option) lock.Locker {
	t.Helper()
	return k.lock(t, s.client, observedPath, append(opts, recipes.WithData([]byte(secretData)))...)
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

// A spanTree is the spans of some services, to be printed.
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
		for _, id := range s.sessions {
			f.changing = append(f.changing, fmt.Sprintf("%#x", uint64(id)))
		}
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
			fmt.Fprintf(out, " %v: %s", s.Status.Code, protectedName.ReplaceAllString(s.Status.Description, "(a contender)"))
		}
		fmt.Fprintln(out)
		for _, a := range sorted(s.Attributes) {
			fmt.Fprintf(out, "%s    %s = %s\n", indent, a.Key, f.steady(a))
		}
		for _, e := range s.Events {
			fmt.Fprintf(out, "%s    event %s %v\n", indent, e.Name, printed(e.Attributes))
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

// protectedName matches the name of a contender's znode, which is another one in each run.
var protectedName = regexp.MustCompile(`_c_[0-9a-f-]{36}-`)

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
	case a.Key == locktel.AttrBlockedByProcess && value == thisProcess():
		return "(this process)"
	}
	return value
}

// thisProcess names the process as spans and log lines do.
func thisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%d on %s", os.Getpid(), host)
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

// measurements prints the metrics of locks, with the notes: of a histogram, how many values are in which
// bucket. The values themselves differ, because an unfair mutex pauses for random times.
func (s *service) measurements(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	for _, m := range s.measured(t).Metrics {
		fmt.Fprintf(&out, "%s (%s): %s\n", m.Name, m.Unit, m.Description)
		var points []string
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				points = append(points, fmt.Sprintf("    %v:%s\n", printed(p.Attributes.ToSlice()), buckets(p)))
			}
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				points = append(points, fmt.Sprintf("    %v: %d\n", printed(p.Attributes.ToSlice()), p.Value))
			}
		}
		slices.Sort(points)
		out.WriteString(strings.Join(points, ""))
	}
	return out.String() + strings.Join(s.notes, "")
}

// buckets prints how many values are in which bucket, by its upper bound.
func buckets(p metricdata.HistogramDataPoint[float64]) string {
	var out string
	for i, n := range p.BucketCounts {
		switch {
		case n > 0 && i < len(p.Bounds):
			out += fmt.Sprintf(" %d up to %v", n, p.Bounds[i])
		case n > 0:
			out += fmt.Sprintf(" %d above", n)
		}
	}
	return out
}

// note adds to the measurements how many locks are held and waited for now.
func (s *service) note(t testing.TB, when string) {
	t.Helper()
	s.notes = append(s.notes, fmt.Sprintf("%s: %v\n", when, s.present(t)))
}

// present returns how many locks the service holds and waits for, as its metrics have it; none that are 0.
func (s *service) present(t testing.TB) (found []string) {
	t.Helper()
	for _, m := range s.measured(t).Metrics {
		if m.Name != locktel.MetricCount {
			continue
		}
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			if p.Value != 0 {
				found = append(found, fmt.Sprintf("%v: %d", printed(p.Attributes.ToSlice()), p.Value))
			}
		}
	}
	slices.Sort(found)
	return found
}

// logged prints the lines of the logger of locks, with the spans that they belong to. Of the fields that
// differ from run to run it prints the keys alone.
func (s *service) logged() string {
	names := make(map[trace.SpanID]string)
	for _, span := range s.spans.GetSpans() {
		names[span.SpanContext.SpanID()] = span.Name
	}
	var out []string
	entries := lockLogs(s)
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].Time.Equal(entries[0].Time) {
			n++
		}
		var together []string // of one instant, in which goroutines log in any order
		for _, e := range entries[:n] {
			together = append(together, line(e, names[spanOf(e).SpanID()]))
		}
		slices.Sort(together)
		out, entries = append(out, together...), entries[n:]
	}
	return strings.Join(out, "")
}

func line(e observer.LoggedEntry, span string) string {
	var out strings.Builder
	fields := e.ContextMap()
	fmt.Fprintf(&out, "%v %s: %s, of %s\n", e.Level, e.LoggerName, e.Message, span)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch key {
		case "duration", "error", locktel.AttrFencingToken, locktel.AttrBlockedBy:
			fmt.Fprintf(&out, "    %s\n", key)
		default:
			fmt.Fprintf(&out, "    %s = %v\n", key, fields[key])
		}
	}
	return out.String()
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

// everythingReportedBy returns all spans, metrics and log lines of a service as text.
func everythingReportedBy(t testing.TB, s *service) string {
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

// spansNamed returns the spans of a service that ended, by the name.
func spansNamed(s *service, name string) []tracetest.SpanStub {
	return slices.DeleteFunc(s.spans.GetSpans(), func(span tracetest.SpanStub) bool { return span.Name != name })
}
