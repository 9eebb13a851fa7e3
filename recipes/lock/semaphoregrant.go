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

// Release deletes the lease's znode, and waits until that in the queue is gone, too.
func (g *semaphoreGrant) Release(ctx context.Context) error {
	if err := g.Grant.Release(ctx); err != nil {
		return err
	}
	return opError("release", g.Of, g.rest.wait(ctx))
}

// A rest is what an attempt leaves behind when it is granted: its znode in the queue.
type rest struct {
	gone chan struct{} // closed when err is set
	err  error         // why the znode may still exist
}

// leave deletes the turn's znode. It is started with the grant, ends with the answer to the
// deletion, at the latest with the client or the session, and the release waits for it.
func (r *rest) leave(turn *waitqueue.Grant) {
	defer close(r.gone)
	// Where this fails, the client goes on by itself until the znode is gone.
	err := turn.Client.Delete(context.Background(), turn.Path, framework.Guaranteed()) //nolint:forbidigo // no caller waits: it has the lock by now
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
