package telemetry

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
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/zapctx"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// A Hold reports one hold, from its grant to its end, for all leases that share it. It implements
// the hooks of a hold.
type Hold struct {
	Lock
	span    trace.Span
	start   time.Time
	release trace.Span // set by the one goroutine that releases; nil before
	most    atomic.Int64
	ended   atomic.Bool
}

// Granted starts to report the hold that the acquire resulted in.
func (a *Acquire) Granted(ctx context.Context, fence, session int64) hold.Hooks {
	if a == nil {
		return hold.NoHooks{}
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
	h.most.Store(max(h.most.Load(), int64(n)))
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
	h.log.Debug("revocation requested", h.fields(zapctx.Field(h.context()))...)
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
// other err the client continues to delete the znode.
func (h *Hold) Released(err error) {
	if h.release != nil {
		failSpan(h.release, framework.ErrorType(err), err)
		h.release.End()
	}
	if !h.Ends() {
		return
	}
	var lost *lease.LostError
	if errors.As(err, &lost) {
		h.Lost(lost, time.Now())
	} else {
		h.Discarded(time.Now())
	}
}

// Ends reports whether the hold ends now, which it does once. The caller that gets true calls Lost
// or Discarded.
func (h *Hold) Ends() bool { return !h.ended.Swap(true) }

// Discarded reports the end of a hold that was not lost.
func (h *Hold) Discarded(at time.Time) {
	ctx, held := h.context(), at.Sub(h.start)
	h.holds.Record(ctx, held.Seconds(), h.holdEnded...)
	h.end(ctx, at)
	if line := h.log.Check(zapcore.DebugLevel, "released"); line != nil {
		line.Write(h.fields(zap.Duration("duration", held), zapctx.Field(ctx))...)
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
	h.span.SetAttributes(why, attribute.String(zktel.AttrErrorType, framework.ErrorType(err)))
	h.span.SetStatus(codes.Error, err.Error())
	h.end(ctx, at)
	h.log.Warn("lost", h.fields(zap.String(locktel.AttrLossReason, reason), zap.Duration("duration", held), zap.Error(err), zapctx.Field(ctx))...)
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
func lossReasons() [6]lossReason {
	return [6]lossReason{
		{lease.ErrNodeDeleted, "node_deleted"},
		{lease.ErrSuspended, "suspended"},
		{framework.ErrSessionDeadline, "lease_deadline"},
		{framework.ErrSessionExpired, "session_expired"},
		{framework.ErrSessionReplaced, "session_replaced"},
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
