package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const traceparentKey = "traceparent"

// traceparentOf returns the traceparent of a span, in the format of W3C Trace Context.
func traceparentOf(sc trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	ctx := trace.ContextWithSpanContext(context.Background(), sc) //nolint:forbidigo // only to carry it
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get(traceparentKey)
}

// spanContextOf returns the span of a traceparent. The traceparent comes from another process: if
// it is invalid, so is the span.
func spanContextOf(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparentKey: traceparent}) //nolint:forbidigo // only to carry it
	return trace.SpanContextFromContext(ctx)
}
