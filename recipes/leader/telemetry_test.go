package leader_test

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

// A term has the spans and metrics of a lock, of the type "leader".
func TestTelemetryOfATerm(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		c := env.Client(t,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		mustResign(t, mustLead(t, newElection(t, c, recipetest.Path(t), recipes.WithName("reports"))))

		var names []string
		for _, span := range spans.Ended() {
			if slices.Contains(span.Attributes(), attribute.String(locktel.AttrType, "leader")) &&
				slices.Contains(span.Attributes(), attribute.String(locktel.AttrName, "reports")) {
				names = append(names, span.Name())
			}
		}
		if want := []string{"lock.acquire reports", "lock.release", "lock.hold"}; !slices.Equal(names, want) {
			t.Errorf("spans %v, want %v", names, want)
		}
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				h, ok := m.Data.(metricdata.Histogram[float64])
				if !ok || m.Name != locktel.MetricAcquireDuration {
					continue
				}
				for _, point := range h.DataPoints {
					kind, _ := point.Attributes.Value(locktel.AttrType)
					found = found || kind.AsString() == "leader" && point.Count == 1
				}
			}
		}
		if !found {
			t.Errorf("no %s of type leader", locktel.MetricAcquireDuration)
		}
	}, zkenv.Only("telemetry is the same in all", zkenv.Embedded, zkenv.Standalone))
}
