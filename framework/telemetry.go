package framework

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/otelzk"
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
	mode := otelzk.SpansNever
	if always {
		mode = otelzk.SpansAlways
	}
	return optionFunc(func(cfg *config) { cfg.spans = mode })
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

// newTelemetry returns the telemetry of a client that has not begun to work.
func newTelemetry(c *core) *otelzk.Telemetry {
	var states []string
	for s := Connecting; s <= ReadOnly; s++ {
		states = append(states, s.key())
	}
	return otelzk.New(otelzk.Config{
		Namespace: c.cfg.prefix,
		Spans:     c.cfg.spans,
		Tracers:   c.cfg.tracerProvider(),
		Meters:    c.cfg.meterProvider(),
		Log:       c.log,
		States:    states,
		Now: func() otelzk.Snapshot {
			return otelzk.Snapshot{
				State: c.presentState().key(), Deletes: c.deletes.pending(), Watches: c.watchCount(),
			}
		},
	})
}
