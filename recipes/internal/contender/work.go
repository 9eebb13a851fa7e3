package contender

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

// releaseGrace is how long Work waits for the deletion of the znode after fn has returned. After
// that the deletion continues in the background.
const releaseGrace = 10 * time.Second

// Work calls fn with the lease and a context that ends with it, and releases the lease, also if fn
// panics. It returns fn's error, joined with the error of the release. A loss that fn's error wraps
// is not joined again.
func Work(
	ctx context.Context, l *lease.Lease, fn func(ctx context.Context, l *lease.Lease) error,
) error {
	return work(ctx, l, func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
	}, fn)
}

// work is Work with the context of the release.
func work(
	ctx context.Context, l *lease.Lease, releasing func() (context.Context, context.CancelFunc),
	fn func(ctx context.Context, l *lease.Lease) error,
) (err error) {
	held, cancel := l.Context(ctx)
	defer func() { // also when fn panics
		cancel()
		releasing, done := releasing()
		defer done()
		if released := l.Release(releasing); !errors.Is(err, released) { // fn may return the loss itself
			err = errors.Join(err, released)
		}
	}()
	return fn(held, l)
}

// Leaving returns the context of a clean-up: it outlives ctx by the grace. If ctx has ended, it ends at
// once when the client has no connection: then the clean-up goes on in the background.
func Leaving(ctx context.Context, c *framework.Client, grace time.Duration) (context.Context, context.CancelFunc) {
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	remove := c.OnState(func(change framework.StateChange) {
		if ctx.Err() != nil && change.To != framework.Connected {
			cancel()
		}
	})
	return leaving, func() { remove(); cancel() }
}
