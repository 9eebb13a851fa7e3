package partition_test

import (
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/recipetest"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/zkenv"
)

// The lease of a key has the spans and metrics of a lock, of the type "partition".
func TestTelemetryOfKeys(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		c := env.Client(t,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		keys, o := names("key-", 2), newOracle(t)
		m := o.start(t, c, recipetest.Path(t), "a", keys, recipes.WithName("shards"))
		o.await(t, keys, "a")
		m.leave(t)

		var ended []string
		for _, span := range spans.Ended() {
			if slices.Contains(span.Attributes(), attribute.String(locktel.AttrType, "partition")) &&
				slices.Contains(span.Attributes(), attribute.String(locktel.AttrName, "shards")) {
				ended = append(ended, span.Name())
			}
		}
		slices.Sort(ended)
		want := []string{
			"lock.acquire shards", "lock.acquire shards", "lock.hold", "lock.hold", "lock.release", "lock.release",
		}
		if !slices.Equal(ended, want) {
			t.Errorf("spans %v, want %v", ended, want)
		}
		if n := acquires(t, reader); n != uint64(len(keys)) {
			t.Errorf("%s of type partition counts %d, want %d", locktel.MetricAcquireDuration, n, len(keys))
		}
	}, zkenv.Only("telemetry is the same in all", zkenv.Embedded, zkenv.Standalone))
}

// acquires returns how many acquires of the name "shards" and the type "partition" the metric counts.
func acquires(t *testing.T, reader sdkmetric.Reader) (n uint64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok || m.Name != locktel.MetricAcquireDuration {
				continue
			}
			for _, point := range h.DataPoints {
				kind, _ := point.Attributes.Value(locktel.AttrType)
				name, _ := point.Attributes.Value(locktel.AttrName)
				if kind.AsString() == "partition" && name.AsString() == "shards" {
					n += point.Count
				}
			}
		}
	}
	return n
}
