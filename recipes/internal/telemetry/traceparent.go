package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const traceparentKey = "traceparent"

// traceparentOf returns what leads to a span, as W3C Trace Context has it.
func traceparentOf(sc trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	ctx := trace.ContextWithSpanContext(context.Background(), sc) //nolint:forbidigo // only to carry it
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get(traceparentKey)
}

// spanContextOf returns the span that a traceparent leads to, an invalid one if
// it leads nowhere: it comes from elsewhere.
func spanContextOf(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparentKey: traceparent}) //nolint:forbidigo // only to carry it
	return trace.SpanContextFromContext(ctx)
}
