package framework

import (
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

// TracerProvider returns what makes the client's spans, for recipes.
func (c *Client) TracerProvider() trace.TracerProvider {
	if c.core.cfg.tracers == nil {
		return otel.GetTracerProvider()
	}
	return c.core.cfg.tracers
}

// MeterProvider returns what keeps the client's metrics, for recipes.
func (c *Client) MeterProvider() metric.MeterProvider {
	if c.core.cfg.meters == nil {
		return otel.GetMeterProvider()
	}
	return c.core.cfg.meters
}

// Logger returns the client's logger, for recipes; it is never nil.
func (c *Client) Logger() *zap.Logger { return c.core.log }
