package barrier

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A Barrier keeps every client waiting while it is set. Its methods may be called concurrently.
type Barrier struct { // immutable
	client *framework.Client
	path   string
	cfg    config
}

// New returns the barrier at path, and sends nothing yet. If arguments are faulty, New returns all
// faults.
func New(c *framework.Client, path string, opts ...Option) (*Barrier, error) {
	cfg, err := newConfig(c, path, opts)
	if err != nil {
		return nil, opError("new barrier", path, err)
	}
	return &Barrier{c, path, cfg}, nil
}

// Set sets the barrier. It returns nil also if the barrier was set. If ctx ends first, the error
// wraps ctx's, and [framework.ErrUnknownOutcome] if a request was sent.
func (b *Barrier) Set(ctx context.Context) error {
	_, err := b.client.Create(cause.Inside(ctx), b.path, contender.LocalAddress(), b.cfg.creation()...)
	return callError(ctx, "set", b.path, except(err, framework.ErrNodeExists))
}

// Remove removes the barrier. It returns nil also if the barrier was not set. If ctx ends first, the
// error wraps ctx's, and [framework.ErrUnknownOutcome] if a request was sent.
func (b *Barrier) Remove(ctx context.Context) error {
	err := b.client.Delete(cause.Inside(ctx), b.path)
	return callError(ctx, "remove", b.path, except(err, framework.ErrNoNode))
}

// Wait returns nil once the barrier is not set, as far as the client's server knows. If ctx ends
// first, the error wraps ctx's. An outage does not end the wait. Other errors are the client's.
func (b *Barrier) Wait(ctx context.Context) error {
	for {
		w, err := b.client.Watch(cause.Inside(ctx), b.path, framework.WatchData)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case err != nil && (ctx.Err() != nil || !waitqueue.Disconnected(err)):
			return callError(ctx, "wait for", b.path, err)
		case err != nil:
			if err := b.client.AwaitConnected(cause.Inside(ctx)); err != nil {
				return callError(ctx, "wait for", b.path, err)
			}
			continue
		}
		err = await(ctx, b.client, w)
		event := w.Event()
		w.Close()
		if err != nil {
			return callError(ctx, "wait for", b.path, err)
		}
		if event == framework.EventDeleted {
			return nil
		}
	}
}

// Path returns the barrier's path.
func (b *Barrier) Path() string { return b.path }

// await returns nil when a watch has fired or may have missed an event, and ctx's error if ctx ends
// first.
func await(ctx context.Context, c *framework.Client, watches ...*framework.Watch) error {
	recheck := time.NewTimer(waitqueue.RecheckDelay(c))
	defer recheck.Stop()
	var second <-chan struct{}
	if len(watches) > 1 {
		second = watches[1].Fired()
	}
	select {
	case <-watches[0].Fired():
	case <-second:
	case <-recheck.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
