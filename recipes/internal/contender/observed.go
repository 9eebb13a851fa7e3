package contender

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// errPanicked ends an acquire that did not return, because a user's function panicked or ended the
// goroutine.
var errPanicked = errors.New("a function of the user's panicked")

// Observed calls get, the rest of an acquire, and reports its end.
func Observed(
	ctx context.Context, seen *telemetry.Acquire, get func() (*lease.Lease, error),
) (l *lease.Lease, err error) {
	if seen == nil {
		return get()
	}
	err = errPanicked // if get does not return
	defer func() { EndAcquire(ctx, seen, l, err) }()
	return get()
}

// EndAcquire reports the end of an acquire, with the lease or with err.
func EndAcquire(ctx context.Context, seen *telemetry.Acquire, l *lease.Lease, err error) {
	var fence int64
	if l != nil {
		fence = l.Fence()
	}
	var wait *lease.WaitError
	if errors.As(err, &wait) {
		err = wait.Err // without the blocking contender, for which a span has links
	}
	seen.End(ctx, fence, err)
}

// ObserverOf returns the observer of an attempt's waiting; nil for none.
func ObserverOf(seen *telemetry.Acquire) waitqueue.Observer {
	if seen == nil {
		return nil
	}
	return seen
}
