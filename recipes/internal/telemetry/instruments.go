// Package telemetry emits the spans, metrics and log lines of recipes that hold leases, under the
// names of package locktel. A recipe calls it when it begins to acquire, waits, is granted,
// releases or loses. Without a recorder, [Lock.Begin] returns nil, and the methods of a nil
// [Acquire] and of a nil [Hold] do nothing.
package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/version"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// A Lock reports the events of one lock. It is immutable; the zero value reports nothing.
type Lock struct {
	*labels
	path string // of the lock, in the ensemble
}

// Of returns the telemetry of a lock of the client. kind is one of the types of this package, and
// path is the lock's in the ensemble.
func Of(c *framework.Client, kind, name, path string) Lock {
	i := c.Shared(instrumentsKey{}, func() any { return &instruments{byLock: make(map[labelsKey]*labels)} }).(*instruments)
	i.made.Do(func() { i.make(c) })
	return Lock{i.labels(kind, name), path}
}

// Multi returns the telemetry of a Multi, from the first of the locks that has any.
func Multi(name string, locks []Lock) Lock {
	for _, l := range locks {
		if l.labels != nil {
			return Lock{l.instruments.labels(TypeMulti, ""), name}
		}
	}
	return Lock{}
}

// Kinds of locks: values of [locktel.AttrType].
const (
	TypeMutex          = "mutex"
	TypeRead           = "read"
	TypeWrite          = "write"
	TypeSemaphoreMutex = "semaphore_mutex"
	TypeSemaphore      = "semaphore"
	TypeUnfair         = "unfair_mutex"
	TypeMulti          = "multi"
	TypeLeader         = "leader"
	TypeDouble         = "double_barrier"
	TypePartition      = "partition"
)

// Values of [locktel.AttrOutcome].
const (
	outcomeAcquired  = "acquired"
	outcomeReentered = "reentered"
	outcomeHeld      = "held"
	outcomeTimeout   = "timeout"
	outcomeCanceled  = "canceled"
	outcomeError     = "error"
	outcomeWithdrawn = "withdrawn"
)

// Values of [locktel.AttrState] and [locktel.AttrLinkKind].
const (
	stateHeld      = "held"
	stateWaiting   = "waiting"
	linkBlockedBy  = "blocked_by"
	linkAcquiredBy = "acquired_by"
)

// Names of the spans. That of a lock with a name has it behind the first.
const (
	spanAcquire = "lock.acquire"
	spanWait    = "lock.wait"
	spanHold    = "lock.hold"
	spanRelease = "lock.release"
)

// instruments are the instruments of one client's locks.
type instruments struct {
	made     sync.Once
	tracer   trace.Tracer
	acquires metric.Float64Histogram
	holds    metric.Float64Histogram
	count    metric.Int64UpDownCounter
	losses   metric.Int64Counter
	log      *zap.Logger

	mu     sync.Mutex // guards byLock
	byLock map[labelsKey]*labels
}

type (
	instrumentsKey struct{}
	labelsKey      struct{ kind, name string }
)

// make creates the instruments. If the provider refuses one, make replaces it by one that does
// nothing, and the application's error handler is notified.
func (i *instruments) make(c *framework.Client) {
	i.log = c.Logger().Named("lock")
	i.tracer = c.TracerProvider().Tracer(locktel.ScopeName,
		trace.WithInstrumentationVersion(version.Module()), trace.WithSchemaURL(semconv.SchemaURL))
	meter := c.MeterProvider().Meter(locktel.ScopeName,
		metric.WithInstrumentationVersion(version.Module()), metric.WithSchemaURL(semconv.SchemaURL))
	bounds := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	var errs [4]error
	i.acquires, errs[0] = meter.Float64Histogram(locktel.MetricAcquireDuration, metric.WithUnit("s"),
		metric.WithDescription("Duration of acquires, also failed ones."),
		metric.WithExplicitBucketBoundaries(bounds...))
	i.holds, errs[1] = meter.Float64Histogram(locktel.MetricHoldDuration, metric.WithUnit("s"),
		metric.WithDescription("Duration of holds."),
		metric.WithExplicitBucketBoundaries(append(bounds, 1800, 3600)...))
	i.count, errs[2] = meter.Int64UpDownCounter(locktel.MetricCount, metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that this process holds or waits for."))
	i.losses, errs[3] = meter.Int64Counter(locktel.MetricLosses, metric.WithUnit("{loss}"),
		metric.WithDescription("Lost locks."))
	for _, err := range errs {
		if err != nil {
			otel.Handle(err)
		}
	}
}

func (i *instruments) labels(kind, name string) *labels {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := labelsKey{kind, name}
	l := i.byLock[key]
	if l == nil {
		l = newLabels(i, kind, name)
		l.begin()
		i.byLock[key] = l
	}
	return l
}

// labels are the attributes that the locks of one kind and name share, converted once to the
// options of spans and measurements. They are immutable.
type labels struct {
	*instruments
	kind, name  string
	acquireSpan string // its name
	base        []attribute.KeyValue
	startOpts   []trace.SpanStartOption

	smooth                 map[resultKey][]metric.RecordOption // of acquires that did not fail
	heldCount, waitCount   []metric.AddOption
	holdEnded, holdWasLost []metric.RecordOption
}

// A resultKey is the result of an acquire that did not fail.
type resultKey struct {
	outcome   string
	contended bool
}

func newLabels(i *instruments, kind, name string) *labels {
	l := &labels{instruments: i, kind: kind, name: name, acquireSpan: spanAcquire}
	l.base = []attribute.KeyValue{attribute.String(locktel.AttrType, kind)}
	if name != "" {
		l.base = append(l.base, attribute.String(locktel.AttrName, name))
		l.acquireSpan += " " + name
	}
	l.startOpts = []trace.SpanStartOption{trace.WithAttributes(l.base...)}
	l.smooth = make(map[resultKey][]metric.RecordOption)
	for _, outcome := range []string{outcomeAcquired, outcomeReentered, outcomeHeld} {
		for _, contended := range []bool{false, true} {
			key := resultKey{outcome, contended}
			l.smooth[key] = []metric.RecordOption{l.with(attribute.String(locktel.AttrOutcome, outcome), attribute.Bool(locktel.AttrContended, contended))}
		}
	}
	l.heldCount = []metric.AddOption{l.with(attribute.String(locktel.AttrState, stateHeld))}
	l.waitCount = []metric.AddOption{l.with(attribute.String(locktel.AttrState, stateWaiting))}
	l.holdEnded = []metric.RecordOption{l.with()}
	l.holdWasLost = []metric.RecordOption{l.with(attribute.String(zktel.AttrErrorType, (*lease.LostError)(nil).ErrorType()))}
	return l
}

// begin has the losses counted from 0 on. A counter that appears with its first loss shows no
// increase to Prometheus.
func (l *labels) begin() {
	if !l.counts() {
		return
	}
	ctx := context.Background() //nolint:forbidigo // it belongs to no call
	for _, r := range lossReasons() {
		l.losses.Add(ctx, 0, l.with(attribute.String(locktel.AttrLossReason, r.reason)))
	}
	l.losses.Add(ctx, 0, l.with(attribute.String(locktel.AttrLossReason, reasonOther)))
}

// with returns the option that adds attributes to those of all measurements.
func (l *labels) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, l.base...)...))
}

// counts reports whether the lock is counted. A Multi is not, because its members are.
func (l *labels) counts() bool { return l.kind != TypeMulti }

// listened reports whether metrics are recorded, or debug lines logged.
func (l *labels) listened(ctx context.Context) bool {
	return l.log.Core().Enabled(zapcore.WarnLevel) || l.acquires.Enabled(ctx)
}

// fields returns the fields of all log lines of the lock, and more.
func (l Lock) fields(more ...zap.Field) []zap.Field {
	fields := append([]zap.Field{zap.String(locktel.AttrType, l.kind), zap.String(locktel.AttrPath, l.path)}, more...)
	if l.name != "" {
		fields = append(fields, zap.String(locktel.AttrName, l.name))
	}
	return fields
}
