package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/slogcore"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// An Acquire reports one call's acquire. Its methods do nothing on nil. It belongs to the goroutine
// that drives the attempt, and is a queue's observer.
type Acquire struct {
	Lock
	span   trace.Span
	traced bool       // the span is recorded
	caller trace.Span // parent of the hold's span
	outer  *Acquire   // of the Multi that this member belongs to; nil for none
	start  time.Time
	joined bool // another goroutine of the same owner acquired the hold
	done   bool // it has ended

	contended bool
	wait      trace.Span // nil until it waits

	cancel context.CancelFunc // of reads; nil for none
	reads  sync.WaitGroup
	seen   []string // paths that have been read

	mu     sync.Mutex // guards linked
	linked []trace.SpanContext
}

type outerKey struct{}

// Begin starts to report a call, unless the call only re-enters. Without a recorder, metrics and
// debug logs it returns nil, and costs a call of the tracer.
func (l Lock) Begin(ctx context.Context) (context.Context, *Acquire) {
	if l.labels == nil {
		return ctx, nil
	}
	traced, span := l.tracer.Start(ctx, l.acquireSpan, l.startOpts...)
	recording := span.IsRecording()
	if !recording && !l.listened(ctx) {
		return ctx, nil
	}
	a := &Acquire{Lock: l, span: span, traced: recording, caller: span, start: time.Now()}
	a.outer, _ = ctx.Value(outerKey{}).(*Acquire)
	if !recording {
		return ctx, a
	}
	span.SetAttributes(attribute.String(locktel.AttrPath, l.path))
	if a.outer != nil {
		a.caller = a.outer.caller
	} else if own := trace.SpanFromContext(ctx); own.SpanContext().IsValid() {
		a.caller = own
	}
	return traced, a
}

// Around returns a context for the acquires of a Multi's members, which find this acquire by it.
func (a *Acquire) Around(ctx context.Context) context.Context {
	if a == nil {
		return ctx
	}
	return context.WithValue(ctx, outerKey{}, a)
}

// Within returns ctx with the span of the acquire.
func (a *Acquire) Within(ctx context.Context) context.Context {
	if a == nil || !a.traced {
		return ctx
	}
	return trace.ContextWithSpan(ctx, a.span)
}

// Join records that another goroutine of the same owner acquired the lock.
func (a *Acquire) Join() {
	if a != nil {
		a.joined = true
	}
}

// Traceparent returns the traceparent of the acquire's span; "" if there is none.
func (a *Acquire) Traceparent() string {
	if a == nil || !a.traced {
		return ""
	}
	return traceparentOf(a.span.SpanContext())
}

// context returns a context with the acquire's span.
func (a *Acquire) context() context.Context {
	return trace.ContextWithSpan(context.Background(), a.span) //nolint:forbidigo // only the span is needed
}

// End ends the acquire, with the fence of the lease or with err.
func (a *Acquire) End(ctx context.Context, fence int64, err error) {
	if a == nil || a.done {
		return
	}
	a.done = true
	outcome := a.outcome(err)
	if a.outer != nil && a.contended {
		a.outer.contended = true
	}
	a.waited(ctx, refusalIsNone(err))
	took := time.Since(a.start)
	a.record(ctx, outcome, err, took)
	a.span.SetAttributes(attribute.String(locktel.AttrOutcome, outcome), attribute.Bool(locktel.AttrContended, a.contended))
	if err == nil {
		a.acquired(ctx, fence, outcome, took)
	}
	failSpan(a.span, errtype.Of(cause.Join(ctx, err)), refusalIsNone(err))
	a.span.End()
}

// Withdraw ends the acquire of a Multi's member without a lease: because of err or, if err is nil
// or a refusal, because the Multi waits for another member.
func (a *Acquire) Withdraw(ctx context.Context, err error) {
	switch {
	case a == nil || a.done:
	case refusalIsNone(err) != nil:
		a.End(ctx, 0, err)
	default:
		a.done = true
		a.span.SetAttributes(attribute.String(locktel.AttrOutcome, outcomeWithdrawn))
		a.span.End()
	}
}

func (a *Acquire) acquired(ctx context.Context, fence int64, outcome string, took time.Duration) {
	a.span.SetAttributes(fencingToken(fence))
	if line := a.log.Check(zapcore.DebugLevel, outcome); line != nil {
		line.Write(a.fields(zap.Int64(locktel.AttrFencingToken, fence), zap.Bool(locktel.AttrContended, a.contended),
			zap.Duration("duration", took), slogcore.Context(ctx))...)
	}
}

// fencingToken returns the attribute for a fence, and none for a lock without a fence.
func fencingToken(fence int64) attribute.KeyValue {
	if fence == 0 {
		return attribute.KeyValue{}
	}
	return attribute.Int64(locktel.AttrFencingToken, fence)
}

func (a *Acquire) record(ctx context.Context, outcome string, err error, took time.Duration) {
	opts := a.withoutError[resultKey{outcome, a.contended}]
	if opts == nil {
		opts = []metric.RecordOption{a.with(attribute.String(locktel.AttrOutcome, outcome), attribute.Bool(locktel.AttrContended, a.contended),
			attribute.String(zktel.AttrErrorType, errtype.Of(cause.Join(ctx, err))))}
	}
	a.acquires.Record(ctx, took.Seconds(), opts...)
}

func (a *Acquire) outcome(err error) string {
	switch {
	case err == nil && a.joined:
		return outcomeReentered
	case err == nil:
		return outcomeAcquired
	case errors.Is(err, lease.ErrHeld):
		a.contended = true
		return outcomeHeld
	case errors.Is(err, context.DeadlineExceeded):
		return outcomeTimeout
	case errors.Is(err, context.Canceled):
		return outcomeCanceled
	}
	return outcomeError
}

// refusalIsNone returns nil for TryLock's refusal, which is no failure.
func refusalIsNone(err error) error {
	if errors.Is(err, lease.ErrHeld) {
		return nil
	}
	return err
}

// failSpan sets the span's status to err, unless that is nil, and its type of error to kind.
func failSpan(span trace.Span, kind string, err error) {
	if err == nil || !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(zktel.AttrErrorType, kind))
	span.SetStatus(codes.Error, err.Error())
}

// NoQueue is the position of a waiter that is in no queue.
const NoQueue = -1

// Waits starts the span of the wait. ahead is the number of contenders ahead in the queue, of which
// the holders of a semaphore count as one, or of members that a barrier still lacks; or [NoQueue].
func (a *Acquire) Waits(ahead int) {
	if a == nil || a.wait != nil {
		return
	}
	a.contended = true
	ctx := a.context()
	_, a.wait = a.tracer.Start(ctx, spanWait, a.startOpts...)
	a.wait.SetAttributes(attribute.String(locktel.AttrPath, a.path))
	if a.counts() {
		a.count.Add(ctx, 1, a.waitCount...)
	}
	field := zap.Skip()
	if ahead >= 0 {
		a.wait.SetAttributes(attribute.Int(locktel.AttrQueuePosition, ahead))
		field = zap.Int(locktel.AttrQueuePosition, ahead)
	}
	if line := a.log.Check(zapcore.DebugLevel, "queued"); line != nil {
		line.Write(a.fields(field, slogcore.Context(ctx))...)
	}
}

// Behind says whose the contender is whose znode holds data, which is in the way, and links the wait to its trace.
// Of several, one after another, the attributes name the last one.
func (a *Acquire) Behind(data []byte) {
	if a == nil || a.wait == nil || !a.wait.IsRecording() && !a.log.Core().Enabled(zapcore.DebugLevel) {
		return
	}
	if m, ok := lease.DecodeMetadata(data); ok {
		a.wait.SetAttributes(attribute.String(locktel.AttrBlockedByProcess, fmt.Sprintf("%d on %s", m.PID, m.Host)))
		if m.Owner != "" {
			a.wait.SetAttributes(attribute.String(locktel.AttrBlockedByOwner, m.Owner))
		}
		a.blockedBy(spanContextOf(m.Traceparent))
	}
}

// BehindAcquire links the wait to an acquire of the same process.
func (a *Acquire) BehindAcquire(other *Acquire) {
	if a != nil && a.wait != nil && other != nil && other.traced {
		a.blockedBy(other.span.SpanContext())
	}
}

// maxLinks bounds the links of one wait, because many contenders may be ahead one after another.
const maxLinks = 8

func (a *Acquire) blockedBy(other trace.SpanContext) {
	if !other.IsValid() || !a.newlyLinked(other) {
		return
	}
	a.wait.AddLink(trace.Link{SpanContext: other, Attributes: []attribute.KeyValue{attribute.String(locktel.AttrLinkKind, linkBlockedBy)}})
	if line := a.log.Check(zapcore.DebugLevel, "blocked"); line != nil {
		line.Write(a.fields(zap.String(locktel.AttrBlockedBy, traceparentOf(other)), slogcore.Context(a.context()))...)
	}
}

func (a *Acquire) newlyLinked(other trace.SpanContext) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.linked) == maxLinks || slices.ContainsFunc(a.linked, other.Equal) {
		return false
	}
	a.linked = append(a.linked, other)
	return true
}

// BehindNode is Behind for a contender whose znode was not read yet. A goroutine reads it while the
// call waits.
func (a *Acquire) BehindNode(ctx context.Context, c *framework.Client, path string) {
	if a == nil || a.wait == nil || !a.wait.IsRecording() || len(a.seen) == maxLinks || slices.Contains(a.seen, path) {
		return
	}
	a.seen = append(a.seen, path)
	ctx, cancel := context.WithCancel(ctx)
	if before := a.cancel; before != nil {
		a.cancel = func() { before(); cancel() }
	} else {
		a.cancel = cancel
	}
	a.reads.Go(func() {
		if data, _, err := c.Get(ctx, path); err == nil { // an error costs only the link
			a.Behind(data)
		}
	})
}

// waited ends the wait, if there was one.
func (a *Acquire) waited(ctx context.Context, err error) {
	if a.wait == nil {
		return
	}
	if a.cancel != nil {
		a.cancel()
		a.reads.Wait()
	}
	failSpan(a.wait, errtype.Of(cause.Join(ctx, err)), err)
	a.wait.End()
	if a.counts() {
		a.count.Add(a.context(), -1, a.waitCount...)
	}
}

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
