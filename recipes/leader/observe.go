package leader

import (
	"context"
	"iter"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/lease"
)

// Leader returns who leads, as far as the client's server knows; false if there is no candidate. If ctx
// ends first, the error wraps ctx's.
func (e *Election) Leader(ctx context.Context) (lease.Participant, bool, error) {
	p, ok, err := contender.First(cause.Inside(ctx), e.queue)
	return p, ok, recipe.CallError(ctx, "leader of", e.path, err)
}

// Participants returns the leader and the candidates behind it, in order; none if there is no
// candidate. The list is a snapshot of a moment that has passed.
func (e *Election) Participants(ctx context.Context) ([]lease.Participant, error) {
	found, err := contender.Participants(cause.Inside(ctx), e.queue)
	return found, recipe.CallError(ctx, "participants of", e.path, err)
}

// Observe returns who leads, now and whenever that changes, the latest alone. It returns false while
// there is no candidate, and while it is not known: the client is not Connected, or the request fails.
// The sequence ends with ctx, with the client, or when the loop is left. A candidate that joins behind
// the leader costs an observer nothing.
func (e *Election) Observe(ctx context.Context) iter.Seq2[lease.Participant, bool] {
	return contender.ObserveFirst(ctx, e.queue, func(err error) { e.warn("leader can't be seen", err) })
}
