package framework

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/internal/version"
)

// dbSystem is how OpenTelemetry's conventions have ZooKeeper called.
const dbSystem = "zookeeper"

// telemetry makes a client's spans and keeps its metrics.
type telemetry struct {
	namespace    string // of the client: "" or a path
	spans        spanMode
	tracer       trace.Tracer
	duration     metric.Float64Histogram
	retries      metric.Int64Counter
	transitions  metric.Int64Counter
	expirations  metric.Int64Counter
	observed     metric.Registration // of what is looked up when metrics are collected
	measurements sync.Map            // of measurement to []metric.RecordOption: as few as attribute values combine to
}

// newTelemetry returns the telemetry of a client that has not begun to work. An
// instrument that can't be had is OpenTelemetry's to report, and does nothing.
func newTelemetry(c *core) *telemetry {
	meter := c.cfg.meterProvider().Meter(ScopeName,
		metric.WithInstrumentationVersion(version.Module()), metric.WithSchemaURL(semconv.SchemaURL))
	t := &telemetry{
		namespace: c.cfg.prefix,
		spans:     c.cfg.spans,
		tracer: c.cfg.tracerProvider().Tracer(ScopeName,
			trace.WithInstrumentationVersion(version.Module()), trace.WithSchemaURL(semconv.SchemaURL)),
	}
	var err error
	t.duration, err = meter.Float64Histogram(MetricOperationDuration, metric.WithUnit("s"),
		metric.WithDescription("Duration of database client operations."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10))
	report(err)
	counter := func(name, unit, description string) metric.Int64Counter {
		instrument, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		report(err)
		return instrument
	}
	t.retries = counter(MetricRetries, "{retry}", "Failed attempts of operations that were followed by another.")
	t.transitions = counter(MetricTransitions, "{transition}", "Changes of the client's state, by the new state.")
	t.expirations = counter(MetricSessionExpirations, "{session}", "Sessions that ended by other means than closing the client.")
	t.watch(c, meter)
	return t
}

// watch has the client's state looked up whenever metrics are collected.
func (t *telemetry) watch(c *core, meter metric.Meter) {
	gauge := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		instrument, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		report(err)
		return instrument
	}
	states := gauge(MetricConnectionState, "{client}", "Clients that are in the state.")
	deletes := gauge(MetricBackgroundDeletes, "{node}", "Guaranteed deletions that are still to be done.")
	watches := gauge(MetricWatchCount, "{watch}", "Watches that the servers keep for the client.")
	all := make(map[State]metric.MeasurementOption)
	for s := Connecting; s <= ReadOnly; s++ {
		all[s] = metric.WithAttributes(attribute.String(AttrConnectionState, s.key()))
	}
	var err error
	t.observed, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := c.presentState()
		for state, attributes := range all {
			var is int64
			if state == now {
				is = 1
			}
			o.ObserveInt64(states, is, attributes)
		}
		o.ObserveInt64(deletes, int64(c.deletes.pending()))
		o.ObserveInt64(watches, int64(c.watchCount()))
		return nil
	}, states, deletes, watches)
	report(err)
}

// changed counts a transition.
func (t *telemetry) changed(ctx context.Context, change StateChange) {
	if t.transitions.Enabled(ctx) {
		t.transitions.Add(ctx, 1, metric.WithAttributes(attribute.String(AttrConnectionState, change.To.key())))
	}
	if change.To == Lost && t.expirations.Enabled(ctx) {
		t.expirations.Add(ctx, 1, metric.WithAttributes(attribute.String(AttrErrorType, ErrorType(change.Cause))))
	}
}

// close ends the looking up.
func (t *telemetry) close() {
	if t.observed != nil {
		report(t.observed.Unregister())
	}
}

// report gives an error of OpenTelemetry's to OpenTelemetry: no operation fails
// for it.
func report(err error) {
	if err != nil {
		otel.Handle(err)
	}
}
