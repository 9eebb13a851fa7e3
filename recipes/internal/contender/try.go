package contender

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

// Try calls try, an attempt that waits for no other contender, with a context that ends after the
// client's connect timeout at the latest. That is how long one attempt of an operation waits for a
// connection. It is enough for a change to another server, and an outage must not make callers wait
// that chose not to. If the limit ends the attempt, the error wraps [framework.ErrNotConnected].
func Try(
	ctx context.Context, c *framework.Client, try func(context.Context) (*lease.Lease, error),
) (*lease.Lease, error) {
	limit := c.ConnectTimeout()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, err := try(limited)
	switch {
	case err == nil && ctx.Err() != nil: // both at once, and limited was a moment late
		ShareOf(l).Discard()
		return nil, ctx.Err()
	case err == nil, ctx.Err() != nil, limited.Err() == nil, !errors.Is(err, limited.Err()):
		return l, err
	}
	return nil, unanswered(limit, err)
}

// unanswered returns the error of a try that its limit has ended with err. It does not wrap err,
// because the caller's context has not ended.
func unanswered(limit time.Duration, err error) error {
	ended := fmt.Errorf("%w: no answer within %v: %v", framework.ErrNotConnected, limit, err) //nolint:errorlint // not wrapped
	if errors.Is(err, lease.ErrHeld) {                                                        // and a znode of the attempt is deleted in the background
		return fmt.Errorf("%w: %w", lease.ErrHeld, ended)
	}
	return ended
}
