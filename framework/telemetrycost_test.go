package framework_test

import (
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// Not parallel: it counts the process's allocations.
func TestOperation_without_telemetry_allocates_nothing(t *testing.T) {
	c := connect(t, zktest.Shared(t).Addr())
	allocations := func(observed bool) float64 {
		return testing.AllocsPerRun(2000, func() {
			if err := framework.Attempt(t.Context(), c, observed); err != nil {
				t.Error(err)
			}
		})
	}
	with, without := allocations(true), allocations(false)
	if with != without {
		t.Errorf("an operation allocates %v times, want %v as without telemetry", with, without)
	}
	t.Logf("an operation allocates %v times around its request", with)

	tr := newTraces() // the check can fail
	traced := connect(t, zktest.Shared(t).Addr(), framework.WithTracerProvider(tr.provider), framework.WithOperationSpans(true))
	c = traced
	if with := allocations(true); with <= without {
		t.Errorf("an operation with a span allocates %v times, want more than %v", with, without)
	}
}

// BenchmarkTelemetry measures what a span and a measurement add to an operation, without the
// request.
func BenchmarkTelemetry(b *testing.B) {
	server := zktest.Shared(b)
	spans := sdktrace.NewTracerProvider() // samples all and exports none
	for name, opts := range map[string][]framework.Option{
		"nothing": nil,
		"metrics": {framework.WithMeterProvider(newMeters().provider)},
		"spans":   {framework.WithTracerProvider(spans), framework.WithOperationSpans(true)},
	} {
		c := connect(b, server.Addr(), opts...)
		for _, observed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/observed=%v", name, observed), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					must.OK(b, framework.Attempt(b.Context(), c, observed))
				}
			})
		}
	}
}
