package framework_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
)

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
			status += ": " + s.Status.Description
		}
		operation, _, _ := strings.Cut(s.Name, " ")
		fmt.Fprintf(&out, "%s (%s, %s)", operation, parent, status)
		for _, a := range uncommon(t, c, s) {
			fmt.Fprintf(&out, " %s=%s", a.Key, a.Value.String())
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

// uncommon checks the attributes that all spans have, and returns the rest, sorted.
func uncommon(t testing.TB, c *framework.Client, s tracetest.SpanStub) []attribute.KeyValue {
	t.Helper()
	var rest []attribute.KeyValue
	namespace := strings.TrimSuffix(c.AbsolutePath("/"), "/")
	name, host, port, system := "", "", fmt.Sprint(framework.DefaultPort), ""
	for _, a := range s.Attributes {
		switch value := a.Value.String(); a.Key {
		case zktel.AttrDBSystem:
			system = value
		case zktel.AttrDBOperation:
			name = strings.TrimSpace(value + " " + namespace)
		case zktel.AttrServerAddress:
			host = value
		case zktel.AttrServerPort:
			port = value
		case zktel.AttrDBNamespace:
			if value != namespace || namespace == "" {
				t.Errorf("span %s has the namespace %q, want %q", s.Name, value, namespace)
			}
		case zktel.AttrSessionID:
			if want := fmt.Sprintf("%#x", c.Session().ID); value != want {
				t.Errorf("span %s is of session %s, want %s", s.Name, value, want)
			}
		case zktel.AttrNodePath:
			rest = append(rest, a.Key.String(strings.TrimPrefix(value, namespace)))
		default:
			rest = append(rest, a)
		}
	}
	if name != s.Name || system != "zookeeper" {
		t.Errorf("span %s is of operation %q and system %q", s.Name, name, system)
	}
	if host == "" {
		rest = append(rest, attribute.String(zktel.AttrServerAddress, "none"))
	} else if server := net.JoinHostPort(host, port); !slices.Contains(c.Servers(), server) {
		t.Errorf("span %s names the server %s, want one of %v", s.Name, server, c.Servers())
	}
	slices.SortFunc(rest, func(a, b attribute.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
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
