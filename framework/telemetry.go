package framework

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/otelzk"
)

// WithTracerProvider sets the provider of the spans of the client and of the recipes on it. The
// default is OpenTelemetry's global provider, which makes none until an application sets it up.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return optionFunc(func(cfg *config) { cfg.tracers = provider })
}

// WithMeterProvider sets the provider of the metrics of the client and of the recipes on it. The
// default is OpenTelemetry's global provider, which keeps none until an application sets it up.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return optionFunc(func(cfg *config) { cfg.meters = provider })
}

// WithOperationSpans sets whether operations have spans, in calls and in the background: all of
// them or none. By default an operation has a span if its context carries a sampled span. So
// operations show in the traces that an application begins, and begin none.
func WithOperationSpans(always bool) Option {
	mode := otelzk.SpansNever
	if always {
		mode = otelzk.SpansAlways
	}
	return optionFunc(func(cfg *config) { cfg.spans = mode })
}

// TracerProvider returns the provider of the client's spans, for recipes.
func (c *Client) TracerProvider() trace.TracerProvider { return c.core.cfg.tracerProvider() }

// MeterProvider returns the provider of the client's metrics, for recipes.
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

// newTelemetry returns the telemetry of a new client, which has not started.
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
		Ends:      []error{ErrSessionExpired, ErrSessionDeadline, ErrSessionReplaced},
		Now: func() otelzk.Snapshot {
			return otelzk.Snapshot{
				State: c.presentState().key(), Deletes: c.deletes.pending(), Watches: c.watchCount(),
			}
		},
	})
}
