package lock

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/zapctx"
	"github.com/docent-go/docent/recipes/internal/queue"
)

// An acquiring is what telemetry follows of one call's way to a lock. A nil one
// follows nothing. It is the goroutine's that makes the attempt, and a
// queue.Observer.
type acquiring struct {
	telemetry
	span   trace.Span
	traced bool       // somebody records the span
	caller trace.Span // that the hold's span is to be a child of
	outer  *acquiring // of the Multi that this is for; nil for none
	start  time.Time
	beyond int  // contenders ahead that do not stand in the queue
	joined bool // the lease is of a hold that another goroutine of the party got
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

// begin starts to follow a call that is about to do more than to re-enter. It
// costs a call of the tracer where nobody listens.
func (t telemetry) begin(ctx context.Context) (context.Context, *acquiring) {
	if t.labels == nil {
		return ctx, nil
	}
	traced, span := t.tracer.Start(ctx, t.acquireSpan, t.startOpts...)
	recording := span.IsRecording()
	if !recording && !t.listened(ctx) {
		return ctx, nil
	}
	a := &acquiring{telemetry: t, span: span, traced: recording, caller: span, start: time.Now()}
	a.outer, _ = ctx.Value(outerKey{}).(*acquiring)
	if !recording {
		return ctx, a
	}
	span.SetAttributes(attribute.String(AttrPath, t.path))
	if a.outer != nil {
		a.caller = a.outer.caller
	} else if own := trace.SpanFromContext(ctx); own.SpanContext().IsValid() {
		a.caller = own
	}
	return traced, a
}

// around returns a context for the acquires of a Multi's members: that is how they
// know of its own.
func (a *acquiring) around(ctx context.Context) context.Context {
	if a == nil {
		return ctx
	}
	return context.WithValue(ctx, outerKey{}, a)
}

// observer returns a as what a queue tells, nil for nobody. beyond is how many
// contenders stand ahead of the whole queue.
func (a *acquiring) observer(beyond int) queue.Observer {
	if a == nil {
		return nil
	}
	a.beyond = beyond
	return a
}

// join takes note that the lock was got by another goroutine of the party.
func (a *acquiring) join() {
	if a != nil {
		a.joined = true
	}
}

// traceparent returns what leads to the acquire's span; "" if there is none.
func (a *acquiring) traceparent() string {
	if a == nil || !a.traced {
		return ""
	}
	return traceparentOf(a.span.SpanContext())
}

// context returns a context with the acquire's span.
func (a *acquiring) context() context.Context {
	return trace.ContextWithSpan(context.Background(), a.span) //nolint:forbidigo // only the span is needed
}

// during follows the rest of the call, which get is, to its end.
func (a *acquiring) during(ctx context.Context, get func() (*Lease, error)) (lease *Lease, err error) {
	if a == nil {
		return get()
	}
	err = errPanicked // if get does not return
	defer func() { a.end(ctx, lease, err) }()
	return get()
}

// end ends the acquire, with the lease or with err.
func (a *acquiring) end(ctx context.Context, lease *Lease, err error) {
	if a == nil || a.done {
		return
	}
	a.done = true
	outcome := a.outcome(err)
	if a.outer != nil && a.contended {
		a.outer.contended = true
	}
	a.waited(refusalIsNone(err))
	took := time.Since(a.start)
	a.record(ctx, outcome, err, took)
	a.span.SetAttributes(attribute.String(AttrOutcome, outcome), attribute.Bool(AttrContended, a.contended))
	if err == nil {
		a.acquired(ctx, lease, outcome, took)
	}
	failSpan(a.span, refusalIsNone(err))
	a.span.End()
}

func (a *acquiring) acquired(ctx context.Context, lease *Lease, outcome string, took time.Duration) {
	fence := lease.hold.grant.Fence()
	a.span.SetAttributes(attribute.Int64(AttrFencingToken, fence))
	if line := a.log.Check(zapcore.DebugLevel, outcome); line != nil {
		line.Write(a.fields(zap.Int64(AttrFencingToken, fence), zap.Bool(AttrContended, a.contended),
			zap.Duration("duration", took), zapctx.Field(ctx))...)
	}
}

func (a *acquiring) record(ctx context.Context, outcome string, err error, took time.Duration) {
	opts := a.smooth[resultKey{outcome, a.contended}]
	if opts == nil {
		opts = []metric.RecordOption{a.with(attribute.String(AttrOutcome, outcome), attribute.Bool(AttrContended, a.contended),
			attribute.String(framework.AttrErrorType, framework.ErrorType(err)))}
	}
	a.acquires.Record(ctx, took.Seconds(), opts...)
}

func (a *acquiring) outcome(err error) string {
	switch {
	case err == nil && a.joined:
		return outcomeReentered
	case err == nil:
		return outcomeAcquired
	case ctxerr.Is(err, ErrHeld):
		a.contended = true
		return outcomeHeld
	case ctxerr.Is(err, context.DeadlineExceeded):
		return outcomeTimeout
	case ctxerr.Is(err, context.Canceled):
		return outcomeCanceled
	}
	return outcomeError
}

// refusalIsNone returns nil for what is no failure: TryLock's answer.
func refusalIsNone(err error) error {
	if ctxerr.Is(err, ErrHeld) {
		return nil
	}
	return err
}

// failSpan tells the span why what it stands for failed, if it did.
func failSpan(span trace.Span, err error) {
	if err == nil || !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(framework.AttrErrorType, framework.ErrorType(err)))
	span.SetStatus(codes.Error, err.Error())
}
