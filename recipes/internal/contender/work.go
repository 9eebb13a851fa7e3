package contender

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

// ReleaseWait is how long Work waits for the deletion of the znode after fn has returned. A quorum
// that works commits it within milliseconds, and within a tenth of a second across regions. After
// that the deletion continues in the background: the result of fn is known, and its caller should
// not wait for an outage to end.
const ReleaseWait = 250 * time.Millisecond

// Work calls fn with the lease and a context that ends with it, and releases the lease, also if fn
// panics. It returns fn's error. Other errors are joined to it: the end of the lease if that came
// before fn returned, and a server's refusal of the release. A loss that fn's error wraps is not
// joined again. A release that is only late is no error.
func Work(
	ctx context.Context, l *lease.Lease, fn func(ctx context.Context, l *lease.Lease) error,
) (err error) {
	held, cancel := l.Context(ctx)
	defer func() { // also when fn panics
		ended := l.Err() // now: what happens later does not change what fn has done
		cancel()
		if released := release(ctx, l); ended == nil {
			ended = released
		}
		if ended != nil && !errors.Is(err, ended) { // fn may return the loss itself
			err = errors.Join(err, ended)
		}
	}()
	return fn(held, l)
}

// Leaving returns the context of a clean-up after ctx has ended: it outlives ctx by the grace, but ends
// when the client has no connection, because then the clean-up goes on in the background.
func Leaving(ctx context.Context, c *framework.Client, grace time.Duration) (context.Context, context.CancelFunc) {
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	remove := c.OnState(func(change framework.StateChange) {
		if change.To != framework.Connected {
			cancel()
		}
	})
	return leaving, func() { remove(); cancel() }
}

// release releases the lease. It returns nil if that continues in the background.
func release(ctx context.Context, l *lease.Lease) error {
	releasing, done := context.WithTimeout(context.WithoutCancel(ctx), ReleaseWait)
	defer done()
	err := l.Release(releasing)
	if errors.Is(err, lease.ErrLost) || !isLate(err) {
		return err
	}
	return nil
}

// isLate reports whether a release failed with err only because no server has answered in time. A
// refusal that is joined to such an error counts: that of another lock of a Multi, or that the deletion
// does not continue in the background.
func isLate(err error) bool {
	return every(err, func(one error) bool {
		return framework.Retryable(one) || errors.Is(one, framework.ErrReadOnly) || errors.Is(one, context.DeadlineExceeded)
	})
}

// every reports whether is returns true for each of the errors that err joins, or for err if it joins
// none. An error that wraps several with a text of its own is one error.
func every(err error, is func(error) bool) bool {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		joined, ok := inner.(interface{ Unwrap() []error }) //nolint:errorlint // errors.As would not tell a join from other wrappers
		if !ok {
			continue
		}
		all := joined.Unwrap()
		if inner.Error() != errors.Join(all...).Error() {
			break
		}
		return !slices.ContainsFunc(all, func(one error) bool { return !every(one, is) })
	}
	return is(err)
}
