package otelzk

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/instrument"
	"github.com/docent-go/docent/internal/version"
)

// dbSystem is ZooKeeper's name in OpenTelemetry's conventions.
const dbSystem = "zookeeper"

// A Config says what a Telemetry reports, and where.
type Config struct {
	Namespace string // of the client: "" or a path
	Tracers   trace.TracerProvider
	Meters    metric.MeterProvider
	Log       *zap.Logger
	States    []string        // the keys of all states
	Ends      []error         // what ends sessions but Close
	Now       func() Snapshot // called whenever metrics are collected
}

// A Snapshot is a client's state at one moment.
type Snapshot struct {
	State   string // its key
	Deletes int    // pending guaranteed deletions
	Watches int    // watches that the server keeps
}

// A Telemetry makes a client's spans and keeps its metrics.
type Telemetry struct {
	namespace    string
	tracer       trace.Tracer
	log          *zap.Logger
	duration     metric.Float64Histogram
	retries      metric.Int64Counter
	transitions  metric.Int64Counter
	expirations  metric.Int64Counter
	observed     metric.Registration // of the values that are read at collection
	measurements sync.Map            // of measurement to []metric.RecordOption
}

// New returns the telemetry of a new client, which has not started. If an instrument can't be made,
// OpenTelemetry reports that, and the instrument does nothing.
func New(cfg Config) *Telemetry {
	meter := cfg.Meters.Meter(zktel.ScopeName,
		metric.WithInstrumentationVersion(version.Module()), metric.WithSchemaURL(semconv.SchemaURL))
	t := &Telemetry{
		namespace: cfg.Namespace,
		log:       cfg.Log,
		tracer: cfg.Tracers.Tracer(zktel.ScopeName,
			trace.WithInstrumentationVersion(version.Module()), trace.WithSchemaURL(semconv.SchemaURL)),
	}
	t.duration = instrument.Of(meter.Float64Histogram(zktel.MetricOperationDuration, metric.WithUnit("s"),
		metric.WithDescription("Duration of database client operations."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)))
	counter := func(name, unit, description string) metric.Int64Counter {
		return instrument.Of(meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description)))
	}
	t.retries = counter(zktel.MetricRetries, "{retry}", "Failed attempts of operations that were followed by another.")
	t.transitions = counter(zktel.MetricTransitions, "{transition}", "Changes of the client's state, by the new state.")
	t.expirations = counter(zktel.MetricSessionExpirations, "{session}", "Sessions that ended by other means than closing the client.")
	t.begin(cfg)
	t.watch(cfg, meter)
	return t
}

// begin has the changes of state and the ended sessions counted from 0 on. A counter that appears
// with its first increment shows no increase to Prometheus.
func (t *Telemetry) begin(cfg Config) {
	ctx := context.Background() //nolint:forbidigo // it belongs to no call
	for _, state := range cfg.States {
		t.transitions.Add(ctx, 0, metric.WithAttributes(attribute.String(zktel.AttrConnectionState, state)))
	}
	for _, end := range cfg.Ends {
		t.expirations.Add(ctx, 0, metric.WithAttributes(attribute.String(zktel.AttrErrorType, errtype.Of(end))))
	}
}

// watch registers a callback that reads the client's state whenever metrics are collected.
func (t *Telemetry) watch(cfg Config, meter metric.Meter) {
	gauge := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		return instrument.Of(meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description)))
	}
	states := gauge(zktel.MetricConnectionState, "{client}", "Clients that are in the state.")
	deletes := gauge(zktel.MetricBackgroundDeletes, "{node}", "Guaranteed deletions that are still to be done.")
	watches := gauge(zktel.MetricWatchCount, "{watch}", "Watches that the servers keep for the client.")
	all := make(map[string]metric.MeasurementOption)
	for _, state := range cfg.States {
		all[state] = metric.WithAttributes(attribute.String(zktel.AttrConnectionState, state))
	}
	var err error
	t.observed, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := cfg.Now()
		for state, attributes := range all {
			var is int64
			if state == now.State {
				is = 1
			}
			o.ObserveInt64(states, is, attributes)
		}
		o.ObserveInt64(deletes, int64(now.Deletes))
		o.ObserveInt64(watches, int64(now.Watches))
		return nil
	}, states, deletes, watches)
	report(err)
}

// Changed counts a transition to a state, by its key.
func (t *Telemetry) Changed(ctx context.Context, state string) {
	if t.transitions.Enabled(ctx) {
		t.transitions.Add(ctx, 1, metric.WithAttributes(attribute.String(zktel.AttrConnectionState, state)))
	}
}

// Expired counts a session that ended, because of cause, and not because the client was closed.
func (t *Telemetry) Expired(ctx context.Context, cause error) {
	if t.expirations.Enabled(ctx) {
		t.expirations.Add(ctx, 1, metric.WithAttributes(attribute.String(zktel.AttrErrorType, errtype.Of(cause))))
	}
}

// Close ends the calls of Config.Now.
func (t *Telemetry) Close() {
	if t.observed != nil {
		report(t.observed.Unregister())
	}
}

// report passes an error of OpenTelemetry to OpenTelemetry's handler; no operation fails by it.
func report(err error) {
	if err != nil {
		otel.Handle(err)
	}
}
