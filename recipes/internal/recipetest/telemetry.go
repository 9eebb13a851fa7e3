package recipetest

import (
	"cmp"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/locktel"
)

// A Recorder has what clients with its Options emit about the leases of one type and name.
type Recorder struct {
	of     []attribute.KeyValue
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

// Record returns a Recorder for a type, such as "leader", and the name of WithName.
func Record(kind, name string) *Recorder {
	return &Recorder{
		[]attribute.KeyValue{attribute.String(locktel.AttrType, kind), attribute.String(locktel.AttrName, name)},
		tracetest.NewSpanRecorder(), sdkmetric.NewManualReader(),
	}
}

// Options returns the options of a client that emits to r.
func (r *Recorder) Options() []framework.Option {
	return []framework.Option{
		framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))),
		framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))),
	}
}

// Spans returns the spans that have ended, in the order of their names.
func (r *Recorder) Spans() []sdktrace.ReadOnlySpan {
	ended := slices.DeleteFunc(r.spans.Ended(), func(s sdktrace.ReadOnlySpan) bool {
		return slices.ContainsFunc(r.of, func(a attribute.KeyValue) bool { return !slices.Contains(s.Attributes(), a) })
	})
	slices.SortStableFunc(ended, func(a, b sdktrace.ReadOnlySpan) int { return cmp.Compare(a.Name(), b.Name()) })
	return ended
}

// MustHaveSpans fails the test unless the spans that have ended have these names, which are sorted.
func (r *Recorder) MustHaveSpans(t testing.TB, want ...string) {
	t.Helper()
	var names []string
	for _, span := range r.Spans() {
		names = append(names, span.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("spans %q, want %q", names, want)
	}
}

// MustHaveAcquires fails the test unless the metric of acquires counts n.
func (r *Recorder) MustHaveAcquires(t testing.TB, n uint64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	must.OK(t, r.reader.Collect(t.Context(), &all))
	got := uint64(0)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok || m.Name != locktel.MetricAcquireDuration {
				continue
			}
			for _, point := range h.DataPoints {
				if !slices.ContainsFunc(r.of, func(a attribute.KeyValue) bool {
					v, _ := point.Attributes.Value(a.Key)
					return v != a.Value
				}) {
					got += point.Count
				}
			}
		}
	}
	if got != n {
		t.Errorf("%s counts %d, want %d", locktel.MetricAcquireDuration, got, n)
	}
}
