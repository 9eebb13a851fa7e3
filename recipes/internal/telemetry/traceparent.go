package lock

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/framework"
)

// WithTraceparent says whether the metadata in the lock's znodes leads to the
// trace of the call that made them, as a W3C traceparent: the spans of those who
// wait for it are linked to it then, in whatever process they are. Nothing is
// written for a call that no span records, nor without metadata (see
// [WithMetadata]). The default is true.
func WithTraceparent(on bool) Option {
	return optionFunc(func(cfg *config) { cfg.untraced = !on })
}

const traceparentKey = "traceparent"

// traceparentOf returns what leads to a span, as W3C Trace Context has it.
func traceparentOf(sc trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	ctx := trace.ContextWithSpanContext(context.Background(), sc) //nolint:forbidigo // only to carry it
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get(traceparentKey)
}

// spanContextOf returns the span that a traceparent leads to, an invalid one if
// it leads nowhere: it comes from elsewhere.
func spanContextOf(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparentKey: traceparent}) //nolint:forbidigo // only to carry it
	return trace.SpanContextFromContext(ctx)
}

// observe tells who has the lease of a semaphore mutex, while the attempt has the
// first place in the queue.
func (a *semaphoreAttempt) observe(ctx context.Context, leases []string) {
	if a.seen == nil {
		return
	}
	a.seen.Waits(0)
	for _, name := range leases {
		if path := framework.JoinPath(a.mutex.leases.Dir, name); path != a.lease.Node {
			a.seen.behindNode(ctx, a.turn.Client, path)
		}
	}
}
