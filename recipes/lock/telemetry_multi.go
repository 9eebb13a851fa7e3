package lock

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/internal/ctxerr"
)

// multiTelemetry returns the telemetry of a Multi: by the client of the first
// member that has one.
func multiTelemetry(members []member, name string) telemetry {
	for _, m := range members {
		if m.tel.labels != nil {
			return telemetry{m.tel.instruments.labels(typeMulti, ""), name}
		}
	}
	return telemetry{}
}

// reenters reports whether the party has all members already.
func (m *Multi) reenters(p party) bool {
	for _, member := range m.members {
		if member.side == nil || !member.side.granted(p) {
			return false
		}
	}
	return true
}

func (s *side) granted(p party) bool {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	h := s.registry.holds[s.key(p)]
	return h != nil && h.grant != nil
}

// begin starts to follow the attempt for a member, if one is made.
func (e *entry) begin(ctx context.Context) {
	if e.hold != nil {
		_, e.seen = e.member.tel.begin(ctx)
		e.hold.follow(e.seen)
	}
}

// follow has telemetry follow the attempt that the caller drives; nil has it not.
func (h *hold) follow(seen *acquiring) {
	h.seen = seen
	if h.attempt != nil {
		h.attempt.Observer = seen.observer(0)
	}
}

// within returns ctx with the span of the acquire.
func (a *acquiring) within(ctx context.Context) context.Context {
	if a == nil || !a.traced {
		return ctx
	}
	return trace.ContextWithSpan(ctx, a.span)
}

// quitAll ends acquires of a Multi's members that come to nothing: because of
// err, or for another member's sake.
func quitAll(ctx context.Context, seen []*acquiring, err error) {
	for _, a := range seen {
		switch {
		case a == nil:
		case err != nil && !ctxerr.Is(err, ErrHeld):
			a.end(ctx, nil, err)
		case !a.done:
			a.done = true
			a.span.SetAttributes(attribute.String(AttrOutcome, outcomeWithdrawn))
			a.span.End()
		}
	}
}
