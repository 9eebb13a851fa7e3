package framework

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// WithTracerProvider says who makes the spans of the client and of the recipes
// on it. The default is OpenTelemetry's global provider, which makes none until
// an application sets it up.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return optionFunc(func(cfg *config) { cfg.tracers = provider })
}

// WithMeterProvider says who keeps the metrics of the client and of the recipes
// on it. The default is OpenTelemetry's global provider, which keeps none until
// an application sets it up.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return optionFunc(func(cfg *config) { cfg.meters = provider })
}

// WithOperationSpans says whether operations have spans, where they are called
// and in the background: all of them or none. The default is that an operation
// has a span where its context carries a sampled one, so that operations show in
// the traces that an application begins and begin none.
func WithOperationSpans(always bool) Option {
	mode := spansNever
	if always {
		mode = spansAlways
	}
	return optionFunc(func(cfg *config) { cfg.spans = mode })
}

// A spanMode says which operations have spans.
type spanMode int

const (
	spansInTraces spanMode = iota // those that are called within a sampled span
	spansNever
	spansAlways
)

// wants reports whether an operation has a span that is called with ctx.
func (m spanMode) wants(ctx context.Context) bool {
	switch m {
	case spansNever:
		return false
	case spansAlways:
		return true
	}
	return trace.SpanContextFromContext(ctx).IsSampled()
}

// TracerProvider returns what makes the client's spans, for recipes.
func (c *Client) TracerProvider() trace.TracerProvider { return c.core.cfg.tracerProvider() }

// MeterProvider returns what keeps the client's metrics, for recipes.
func (c *Client) MeterProvider() metric.MeterProvider { return c.core.cfg.meterProvider() }

func (cfg *config) tracerProvider() trace.TracerProvider {
	if cfg.tracers == nil {
		return otel.GetTracerProvider()
	}
	return cfg.tracers
}

func (cfg *config) meterProvider() metric.MeterProvider {
	if cfg.meters == nil {
		return otel.GetMeterProvider()
	}
	return cfg.meters
}

// Logger returns the client's logger, for recipes; it is never nil.
func (c *Client) Logger() *zap.Logger { return c.core.log }
