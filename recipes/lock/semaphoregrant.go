package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A semaphoreGrant is the grant of a semaphore mutex: a znode among the leases, and the rest of the
// attempt.
type semaphoreGrant struct {
	contender.Grant
	rest *rest
}

// Release deletes the lease's znode, and waits until the znode in the queue is gone too.
func (g *semaphoreGrant) Release(ctx context.Context) error {
	if err := g.Grant.Release(ctx); err != nil {
		return err
	}
	return opError("release", g.Of, g.rest.wait(ctx))
}

// A rest is what a granted attempt leaves behind: its znode in the queue.
type rest struct {
	gone chan struct{} // closed when err is set
	err  error         // why the znode may still exist
}

// leave deletes the turn's znode. It is started with the grant, and the release waits for it. It
// ends with the reply to the deletion, or with the client or the session.
func (r *rest) leave(turn *waitqueue.Grant) {
	defer close(r.gone)
	// If this fails, the client continues until the znode is gone.
	err := turn.Client.Delete(context.Background(), turn.Path, framework.Guaranteed()) //nolint:forbidigo // the caller has the lock by now, and does not wait
	if !over(err) {
		r.err = err
	}
}

// wait returns when the znode is gone, or why it may still exist.
func (r *rest) wait(ctx context.Context) error {
	if err := wait(ctx, r.gone); err != nil {
		return err
	}
	return r.err
}

// over reports whether a deletion that failed with err has nothing left to delete.
func over(err error) bool {
	return errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrSessionEnded) || errors.Is(err, framework.ErrClosed)
}
