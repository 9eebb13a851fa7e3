package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// observed calls get, which is the rest of an acquire, and reports its end.
func observed(
	ctx context.Context, seen *telemetry.Acquire, get func() (*Lease, error),
) (lease *Lease, err error) {
	if seen == nil {
		return get()
	}
	err = errPanicked // if get does not return
	defer func() { endAcquire(ctx, seen, lease, err) }()
	return get()
}

// endAcquire reports the end of an acquire, with the lease or with err.
func endAcquire(ctx context.Context, seen *telemetry.Acquire, lease *Lease, err error) {
	var fence int64
	if lease != nil {
		fence = lease.Fence()
	}
	var wait *WaitError
	if errors.As(err, &wait) {
		err = wait.Err // whom the call waited for is for its caller: a span has links
	}
	seen.End(ctx, fence, err)
}

// observerOf returns what a queue reports an attempt's waiting to; nil for nobody.
func observerOf(seen *telemetry.Acquire) waitqueue.Observer {
	if seen == nil {
		return nil
	}
	return seen
}
