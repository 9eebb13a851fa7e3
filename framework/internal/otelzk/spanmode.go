package otelzk

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// A SpanMode says which operations have spans.
type SpanMode int

// The modes.
const (
	SpansInTraces SpanMode = iota // operations that are called within a sampled span
	SpansNever
	SpansAlways
)

// wants reports whether an operation that is called with ctx has a span.
func (m SpanMode) wants(ctx context.Context) bool {
	switch m {
	case SpansNever:
		return false
	case SpansAlways:
		return true
	}
	return trace.SpanContextFromContext(ctx).IsSampled()
}
