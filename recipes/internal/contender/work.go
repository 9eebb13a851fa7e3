package contender

import (
	"context"
	"errors"
	"time"

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
) (err error) {
	held, cancel := l.Context(ctx)
	defer func() { // also when fn panics
		cancel()
		releasing, done := context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
		defer done()
		if released := l.Release(releasing); !errors.Is(err, released) { // fn may return the loss itself
			err = errors.Join(err, released)
		}
	}()
	return fn(held, l)
}
