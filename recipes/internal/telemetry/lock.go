// Package telemetry emits the spans, metrics and log lines of recipes that hold leases, under the
// names of package locktel. A recipe calls it when it begins to acquire, waits, is granted,
// releases or loses. Without a recorder, [Lock.Begin] returns nil, and the methods of a nil
// [Acquire] do nothing.
package telemetry

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/instrument"
	"github.com/docent-go/docent/internal/slogcore"
	"github.com/docent-go/docent/internal/version"
	"github.com/docent-go/docent/recipes/internal/hold"
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
	i := framework.Shared(c, func() *instruments { return &instruments{byLock: make(map[labelsKey]*labels)} })
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

// eventReentered is the name of an event of a hold's span.
const eventReentered = "reentered"

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

type labelsKey struct{ kind, name string }

// make creates the instruments. If the provider refuses one, make replaces it by one that does
// nothing, and the application's error handler is notified.
func (i *instruments) make(c *framework.Client) {
	i.log = c.Logger().Named("lock")
	i.tracer = c.TracerProvider().Tracer(locktel.ScopeName,
		trace.WithInstrumentationVersion(version.Module()), trace.WithSchemaURL(semconv.SchemaURL))
	meter := c.MeterProvider().Meter(locktel.ScopeName,
		metric.WithInstrumentationVersion(version.Module()), metric.WithSchemaURL(semconv.SchemaURL))
	bounds := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	i.acquires = instrument.Of(meter.Float64Histogram(locktel.MetricAcquireDuration, metric.WithUnit("s"),
		metric.WithDescription("Duration of acquires, also failed ones."),
		metric.WithExplicitBucketBoundaries(bounds...)))
	i.holds = instrument.Of(meter.Float64Histogram(locktel.MetricHoldDuration, metric.WithUnit("s"),
		metric.WithDescription("Duration of holds."),
		metric.WithExplicitBucketBoundaries(append(bounds, 1800, 3600)...)))
	i.count = instrument.Of(meter.Int64UpDownCounter(locktel.MetricCount, metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that this process holds or waits for.")))
	i.losses = instrument.Of(meter.Int64Counter(locktel.MetricLosses, metric.WithUnit("{loss}"),
		metric.WithDescription("Lost locks.")))
}

func (i *instruments) labels(kind, name string) *labels {
	key := labelsKey{kind, name}
	i.mu.Lock()
	l := i.byLock[key]
	first := l == nil
	if first {
		l = newLabels(i, kind, name)
		i.byLock[key] = l
	}
	i.mu.Unlock()
	if first {
		l.begin()
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

	withoutError           map[resultKey][]metric.RecordOption // of acquires that did not fail
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
	l.withoutError = make(map[resultKey][]metric.RecordOption)
	for _, outcome := range []string{outcomeAcquired, outcomeReentered, outcomeHeld} {
		for _, contended := range []bool{false, true} {
			key := resultKey{outcome, contended}
			l.withoutError[key] = []metric.RecordOption{l.with(attribute.String(locktel.AttrOutcome, outcome), attribute.Bool(locktel.AttrContended, contended))}
		}
	}
	l.heldCount = []metric.AddOption{l.with(attribute.String(locktel.AttrState, stateHeld))}
	l.waitCount = []metric.AddOption{l.with(attribute.String(locktel.AttrState, stateWaiting))}
	l.holdEnded = []metric.RecordOption{l.with()}
	l.holdWasLost = []metric.RecordOption{l.with(attribute.String(zktel.AttrErrorType, (*lease.LostError)(nil).ErrorType()))}
	return l
}

// begin records zero losses, so that Prometheus sees the first one as an increase.
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

// A Hold reports one hold, from its grant to its end, for all leases that share it. It implements
// the hooks of a hold.
type Hold struct {
	Lock
	span    trace.Span
	start   time.Time
	release trace.Span // set by the one goroutine that releases; nil before
	most    atomic.Int64
}

// Granted starts to report the hold that the acquire resulted in. It returns nil if that is not reported.
func (a *Acquire) Granted(ctx context.Context, fence, session int64) hold.Hooks {
	if a == nil {
		return nil
	}
	h := &Hold{Lock: a.Lock, start: time.Now()}
	acquire := trace.WithLinks(trace.Link{
		SpanContext: a.span.SpanContext(),
		Attributes:  []attribute.KeyValue{attribute.String(locktel.AttrLinkKind, linkAcquiredBy)},
	})
	_, h.span = a.tracer.Start(trace.ContextWithSpan(ctx, a.caller), spanHold, append(a.startOpts[:1:1], acquire)...)
	if h.span.IsRecording() {
		h.span.SetAttributes(
			attribute.String(locktel.AttrPath, h.path),
			fencingToken(fence),
			attribute.String(zktel.AttrSessionID, sessionID(session)))
	}
	if h.counts() {
		h.count.Add(ctx, 1, h.heldCount...)
	}
	return h
}

// sessionID returns an id as servers log it.
func sessionID(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// Leased records the present number of leases. It calls no code outside.
func (h *Hold) Leased(n int) {
	if int64(n) > h.most.Load() {
		h.most.Store(int64(n))
	}
}

// Reentered adds an event to the hold's span.
func (h *Hold) Reentered(n int) {
	if h.span.IsRecording() {
		h.span.AddEvent(eventReentered, trace.WithAttributes(attribute.Int(locktel.AttrHoldCount, n)))
	}
}

// Carry returns parent with the hold's span, for the work under the first lease. If parent belongs
// to another trace already, Carry returns it unchanged.
func (h *Hold) Carry(parent context.Context) context.Context {
	if !h.span.IsRecording() {
		return parent
	}
	if own := trace.SpanContextFromContext(parent); own.IsValid() && own.TraceID() != h.span.SpanContext().TraceID() {
		return parent
	}
	return trace.ContextWithSpan(parent, h.span)
}

// RevocationRequested reports that another client asked the holder to release.
func (h *Hold) RevocationRequested() {
	h.span.SetAttributes(attribute.Bool(locktel.AttrRevocation, true))
	h.log.Debug("revocation requested", h.fields(slogcore.Context(h.context()))...)
}

// Releasing starts the span of the release, and returns its context.
func (h *Hold) Releasing(ctx context.Context) context.Context {
	if !h.span.IsRecording() {
		return ctx
	}
	ctx, h.release = h.tracer.Start(trace.ContextWithSpan(ctx, h.span), spanRelease, h.startOpts...)
	h.release.SetAttributes(attribute.String(locktel.AttrPath, h.path))
	return ctx
}

// Released ends the hold after a release. If the release showed a loss, err is the loss. After any
// other err the client continues to delete the znode, be it that another lease's loss has ended the release.
func (h *Hold) Released(err error) {
	if h.release != nil {
		failSpan(h.release, zktel.ErrorType(err), err)
		h.release.End()
	}
	var lost *lease.LostError
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) // maybe by another lease's loss
	if errors.As(err, &lost) && !ended {
		h.Lost(lost, time.Now())
	} else {
		h.Discarded(time.Now())
	}
}

// Discarded reports the end of a hold that was not lost.
func (h *Hold) Discarded(at time.Time) {
	ctx, held := h.context(), at.Sub(h.start)
	h.holds.Record(ctx, held.Seconds(), h.holdEnded...)
	h.end(ctx, at)
	if line := h.log.Check(zapcore.DebugLevel, "released"); line != nil {
		line.Write(h.fields(zap.Duration("duration", held), slogcore.Context(ctx))...)
	}
}

// Lost reports the end of a hold that was lost.
func (h *Hold) Lost(err error, at time.Time) {
	ctx, held, reason := h.context(), at.Sub(h.start), reasonOf(err)
	why := attribute.String(locktel.AttrLossReason, reason)
	h.holds.Record(ctx, held.Seconds(), h.holdWasLost...)
	if h.counts() {
		h.losses.Add(ctx, 1, h.with(why))
	}
	h.span.SetAttributes(why, attribute.String(zktel.AttrErrorType, zktel.ErrorType(err)))
	h.span.SetStatus(codes.Error, err.Error())
	h.end(ctx, at)
	h.log.Warn("lost", h.fields(zap.String(locktel.AttrLossReason, reason), zap.Duration("duration", held), zap.Error(err), slogcore.Context(ctx))...)
}

func (h *Hold) end(ctx context.Context, at time.Time) {
	if h.counts() {
		h.count.Add(ctx, -1, h.heldCount...)
	}
	h.span.SetAttributes(attribute.Int64(locktel.AttrHoldCount, h.most.Load()))
	h.span.End(trace.WithTimestamp(at))
}

// context returns a context with the hold's span, because the hold outlives every caller's own
// context.
func (h *Hold) context() context.Context {
	return trace.ContextWithSpan(context.Background(), h.span) //nolint:forbidigo // outlives the caller
}

// A lossReason is a value of [locktel.AttrLossReason], and what causes it.
type lossReason struct {
	cause  error
	reason string
}

// lossReasons returns all but reasonOther.
func lossReasons() [5]lossReason {
	return [5]lossReason{
		{lease.ErrNodeDeleted, "node_deleted"},
		{lease.ErrSuspended, "suspended"},
		{framework.ErrSessionDeadline, "lease_deadline"},
		{framework.ErrSessionExpired, "session_expired"},
		{framework.ErrClosed, "client_closed"},
	}
}

const reasonOther = "other"

// reasonOf returns the value of locktel.AttrLossReason for a loss.
func reasonOf(err error) string {
	for _, r := range lossReasons() {
		if errors.Is(err, r.cause) {
			return r.reason
		}
	}
	return reasonOther
}
