package lock

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/zapctx"
	"github.com/docent-go/docent/recipes/internal/queue"
)

// A holding is what telemetry follows of one hold, from its grant to its end,
// however many leases share it. A nil one follows nothing.
type holding struct {
	telemetry
	span    trace.Span
	start   time.Time
	first   *Lease     // the one that the lock was acquired with; set once, by the goroutine of the grant
	release trace.Span // set by the one goroutine that releases; nil before
	most    atomic.Int64
	ended   atomic.Bool
}

// granted starts to follow the hold that a call has got.
func (a *acquiring) granted(ctx context.Context, g *queue.Grant) *holding {
	if a == nil {
		return nil
	}
	h := &holding{telemetry: a.telemetry, start: time.Now()}
	acquire := trace.WithLinks(trace.Link{
		SpanContext: a.span.SpanContext(),
		Attributes:  []attribute.KeyValue{attribute.String(AttrLinkKind, linkAcquiredBy)},
	})
	_, h.span = a.tracer.Start(trace.ContextWithSpan(ctx, a.caller), spanHold, append(a.startOpts[:1:1], acquire)...)
	if h.span.IsRecording() {
		h.span.SetAttributes(
			attribute.String(AttrPath, h.path),
			attribute.Int64(AttrFencingToken, g.Fence()),
			attribute.String(framework.AttrSessionID, sessionID(g.Hold.Session())))
	}
	if h.counts() {
		h.count.Add(ctx, 1, h.heldCount...)
	}
	return h
}

// sessionID returns an id as servers log it.
func sessionID(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// leased takes note of a lease, and of how many there are now. It needs the
// hold's registry.mu, and calls nothing outside.
func (h *holding) leased(l *Lease, n int) {
	if h == nil {
		return
	}
	if h.first == nil {
		h.first = l
	}
	h.most.Store(max(h.most.Load(), int64(n)))
}

// carriedBy returns parent with the hold's span, for the work under the lock. It
// stays as it is where it has its place in a trace already: in another trace
// than the acquire's, or below the hold, as with a lease of a re-entry.
func (h *holding) carriedBy(parent context.Context, l *Lease) context.Context {
	if h == nil || l != h.first || !h.span.IsRecording() {
		return parent
	}
	if own := trace.SpanContextFromContext(parent); own.IsValid() && own.TraceID() != h.span.SpanContext().TraceID() {
		return parent
	}
	return trace.ContextWithSpan(parent, h.span)
}

// revocation takes note of a request to let go.
func (h *holding) revocation() {
	if h == nil {
		return
	}
	h.span.SetAttributes(attribute.Bool(AttrRevocation, true))
	h.log.Debug("asked to let go", h.fields(zapctx.Field(h.context()))...)
}

// releasing starts the span of the release, and returns its context.
func (h *holding) releasing(ctx context.Context) context.Context {
	if h == nil || !h.span.IsRecording() {
		return ctx
	}
	ctx, h.release = h.tracer.Start(trace.ContextWithSpan(ctx, h.span), spanRelease, h.startOpts...)
	h.release.SetAttributes(attribute.String(AttrPath, h.path))
	return ctx
}

// released ends the hold, as it was given back. Where that showed that it had
// been lost, err says so; any other err leaves the znode's deletion to the client.
func (h *holding) released(err error) {
	if h == nil {
		return
	}
	if h.release != nil {
		failSpan(h.release, err)
		h.release.End()
	}
	var lost *LostError
	if errors.As(err, &lost) {
		if h.ends() {
			h.tellLost(lost, time.Now())
		}
		return
	}
	if h.ends() {
		h.tellReleased(time.Now())
	}
}

// ends reports whether the hold ends now: it does so once.
func (h *holding) ends() bool { return h != nil && !h.ended.Swap(true) }

func (h *holding) tellReleased(at time.Time) {
	ctx, held := h.context(), at.Sub(h.start)
	h.holds.Record(ctx, held.Seconds(), h.holdEnded...)
	h.end(ctx, at)
	if line := h.log.Check(zapcore.DebugLevel, "released"); line != nil {
		line.Write(h.fields(zap.Duration("duration", held), zapctx.Field(ctx))...)
	}
}

func (h *holding) tellLost(err *LostError, at time.Time) {
	ctx, held, reason := h.context(), at.Sub(h.start), lossReason(err)
	why := attribute.String(AttrLossReason, reason)
	h.holds.Record(ctx, held.Seconds(), h.holdWasLost...)
	if h.counts() {
		h.losses.Add(ctx, 1, h.with(why))
	}
	h.span.SetAttributes(why, attribute.String(framework.AttrErrorType, err.ErrorType()))
	h.span.SetStatus(codes.Error, err.Error())
	h.end(ctx, at)
	h.log.Warn("lost", h.fields(zap.String(AttrLossReason, reason), zap.Duration("duration", held), zap.Error(err), zapctx.Field(ctx))...)
}

func (h *holding) end(ctx context.Context, at time.Time) {
	if h.counts() {
		h.count.Add(ctx, -1, h.heldCount...)
	}
	h.span.SetAttributes(attribute.Int64(AttrHoldCount, h.most.Load()))
	h.span.End(trace.WithTimestamp(at))
}

// tellLost ends the hold for telemetry, for err. Providers and loggers are the
// user's, and may be slow, while other holds are about to be lost, too: so it
// goes on elsewhere.
func (h *hold) tellLost(err *LostError) {
	if h.held.ends() {
		at := time.Now()
		h.tell(func() { h.held.tellLost(err, at) })
	}
}

// tellGivenUp is tellLost for a hold that was not lost itself.
func (h *hold) tellGivenUp() {
	if h.held.ends() {
		at := time.Now()
		h.tell(func() { h.held.tellReleased(at) })
	}
}

func (h *hold) tell(fn func()) {
	if !h.registry.call(h.grant.Client, fn) {
		fn() // the client is closed, so nobody waits for what comes after this
	}
}

// context returns a context with the hold's span: the hold outlives every
// caller's own.
func (h *holding) context() context.Context {
	return trace.ContextWithSpan(context.Background(), h.span) //nolint:forbidigo // see above
}

// lossReason returns the value of AttrLossReason for a loss.
func lossReason(err error) string {
	reasons := []struct {
		cause  error
		reason string
	}{
		{ErrNodeDeleted, "node_deleted"},
		{ErrSuspended, "suspended"},
		{framework.ErrSessionDeadline, "lease_deadline"},
		{framework.ErrSessionExpired, "session_expired"},
		{framework.ErrSessionReplaced, "session_replaced"},
		{framework.ErrClosed, "client_closed"},
	}
	for _, r := range reasons {
		if ctxerr.Is(err, r.cause) {
			return r.reason
		}
	}
	return "other"
}
