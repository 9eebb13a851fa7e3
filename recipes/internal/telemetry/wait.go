package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/zapctx"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// NoQueue is the position of a waiter that is in no queue.
const NoQueue = -1

// Waits starts the span of the wait. ahead is the number of contenders ahead in the queue, or
// [NoQueue].
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
	place := zap.Skip()
	if ahead >= 0 {
		position := ahead + a.beyond
		a.wait.SetAttributes(attribute.Int(locktel.AttrQueuePosition, position))
		place = zap.Int(locktel.AttrQueuePosition, position)
	}
	if line := a.log.Check(zapcore.DebugLevel, "queued"); line != nil {
		line.Write(a.fields(place, zapctx.Field(ctx))...)
	}
}

// Behind links the wait to the trace of the contender whose znode holds data.
func (a *Acquire) Behind(data []byte) {
	if a == nil || a.wait == nil || !a.wait.IsRecording() && !a.log.Core().Enabled(zapcore.DebugLevel) {
		return
	}
	if m, ok := lease.DecodeMetadata(data); ok {
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
		line.Write(a.fields(zap.String(locktel.AttrBlockedBy, traceparentOf(other)), zapctx.Field(a.context()))...)
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
	failSpan(a.wait, cause.Type(ctx, err), err)
	a.wait.End()
	if a.counts() {
		a.count.Add(a.context(), -1, a.waitCount...)
	}
}
