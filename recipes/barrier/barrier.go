package barrier

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A Barrier keeps every client waiting while it is set. Its methods may be called concurrently.
type Barrier struct { // immutable
	client *framework.Client
	path   string
	cfg    args.Options
}

// New returns the barrier at path, and sends nothing yet. If arguments are faulty, New returns all
// faults.
func New(c *framework.Client, path string, opts ...Option) (*Barrier, error) {
	cfg, err := newConfig(c, path, opts)
	if err != nil {
		return nil, recipe.Error(c, "new barrier", path, err)
	}
	return &Barrier{c, path, cfg}, nil
}

// Set sets the barrier. It returns nil even if the barrier was set. If ctx ends first, the error
// wraps ctx's, and [framework.ErrUnknownOutcome] if a request was sent.
func (b *Barrier) Set(ctx context.Context) error {
	_, err := b.client.Create(ctx, b.path, contender.LocalAddress(), append(b.cfg.WithACL(), framework.WithParents())...)
	return recipe.CallError(ctx, b.client, "set", b.path, except(err, framework.ErrNodeExists))
}

// Remove removes the barrier. It returns nil even if the barrier was not set. If ctx ends first, the
// error wraps ctx's, and [framework.ErrUnknownOutcome] if a request was sent.
func (b *Barrier) Remove(ctx context.Context) error {
	err := b.client.Delete(ctx, b.path)
	return recipe.CallError(ctx, b.client, "remove", b.path, except(err, framework.ErrNoNode))
}

// Wait returns nil once the barrier is not set, as far as the client's server knows. If ctx ends
// first, the error wraps ctx's. An outage does not end the wait. Other errors are the client's.
func (b *Barrier) Wait(ctx context.Context) error {
	for {
		w, err := b.client.Watch(ctx, b.path, framework.WatchData)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case err != nil && (ctx.Err() != nil || !waitqueue.Disconnected(err)):
			return recipe.CallError(ctx, b.client, "wait for", b.path, err)
		case err != nil:
			if err := b.client.AwaitConnected(ctx); err != nil {
				return recipe.CallError(ctx, b.client, "wait for", b.path, err)
			}
			continue
		}
		err = w.Await(ctx)
		event := w.Event()
		w.Close()
		if err != nil {
			return recipe.CallError(ctx, b.client, "wait for", b.path, args.Ended(ctx, b.client))
		}
		if event == framework.EventDeleted {
			return nil
		}
	}
}

// Path returns the barrier's path.
func (b *Barrier) Path() string { return b.path }
