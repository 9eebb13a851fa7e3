package contender

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// WaitError returns the [lease.WaitError] of a wait that ctx ended, and err itself if it ended
// otherwise.
func WaitError(
	ctx context.Context, c *framework.Client, path string, ahead int, by *lease.Participant, err error,
) error {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return &lease.WaitError{Path: path, Ahead: ahead, BlockedBy: by, Err: whyEnded(ctx, c)}
}

// whyEnded returns the error of ctx, which has ended, and why the client has no connection if it has
// none: the server's address is part of that.
func whyEnded(ctx context.Context, c *framework.Client) error {
	state := c.State()
	if state == framework.Connected {
		return ctx.Err()
	}
	var why *framework.OpError
	if err := c.AwaitConnected(cause.Inside(ctx)); errors.As(err, &why) && errors.Is(err, framework.ErrNotConnected) {
		return why.Err
	}
	return fmt.Errorf("%w: %w (%v)", ctx.Err(), framework.ErrNotConnected, state)
}

// HeldError returns [lease.ErrHeld] for a queue's refusal, with the errors joined to it.
func HeldError(err error) error {
	if err == waitqueue.ErrBusy { //nolint:errorlint // alone: there is nothing to add
		return lease.ErrHeld
	}
	if errors.Is(err, waitqueue.ErrBusy) {
		return fmt.Errorf("%w: %w", lease.ErrHeld, err)
	}
	return err
}

// WaitErrorOf returns the [lease.WaitError] of an attempt that ctx ended, in the queue of the
// recipe at path. It returns nil for nil, and err itself if the attempt ended otherwise. beyond
// contenders are ahead of the whole queue.
func WaitErrorOf(
	ctx context.Context, q *waitqueue.Queue, path string, a *waitqueue.Attempt, beyond int, err error,
) error {
	if err == nil {
		return nil
	}
	ahead, node, holds, data, st := a.BlockedBy()
	if ahead < 0 {
		return WaitError(ctx, q.Client, path, -1, nil, err)
	}
	by := OfNode(framework.JoinPath(q.Dir, node.Name), node, data, st)
	by.Holder = holds && beyond == 0
	return WaitError(ctx, q.Client, path, ahead+beyond, &by, err)
}
