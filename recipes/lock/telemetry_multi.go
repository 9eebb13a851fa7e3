package lock

import (
	"context"

	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// multiTelemetry returns the telemetry of a Multi.
func multiTelemetry(members []member, name string) telemetry.Lock {
	locks := make([]telemetry.Lock, len(members))
	for i, m := range members {
		locks[i] = m.tel
	}
	return telemetry.Multi(name, locks)
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
		_, e.seen = e.member.tel.Begin(ctx)
		e.hold.follow(e.seen)
	}
}

// follow has telemetry follow the attempt that the caller drives; nil has it not.
func (h *hold) follow(seen *telemetry.Acquire) {
	h.seen = seen
	if h.attempt != nil {
		h.attempt.Observer = observerOf(seen)
	}
}

// withdrawAll ends acquires of a Multi's members that come to nothing: because of err, or for
// another member's sake.
func withdrawAll(ctx context.Context, seen []*telemetry.Acquire, err error) {
	for _, a := range seen {
		a.Withdraw(ctx, err)
	}
}
