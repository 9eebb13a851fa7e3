package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

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
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/zkenv"
)

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
