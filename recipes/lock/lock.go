package lock

import (
	"context"
	"errors"
	"time"
)

// A Locker is a lock that is held by a lease. All kinds of locks here are
// Lockers, or have sides that are. Its methods may be called concurrently.
type Locker interface {
	// Lock waits until the lock is the caller's and returns the lease. ctx
	// bounds the wait only, never the lease; if it ends first the error
	// wraps ctx's, and nothing of the attempt stays in anybody's way.
	Lock(ctx context.Context) (*Lease, error)

	// TryLock makes one attempt and never waits for another holder: it returns
	// ErrHeld where there is one. ctx bounds its requests.
	TryLock(ctx context.Context) (*Lease, error)
}

// releaseGrace is how long Do waits for the lock's znode to go, once fn has
// returned. Its deletion goes on in the background after that.
const releaseGrace = 10 * time.Second

// Do calls fn while it holds l, and releases l. fn's context is derived from ctx
// and ends, with a [*LostError] as its cause, when the lock is lost: fn has to stop
// then, as somebody else may be about to get it. [LeaseFromContext] finds the lease by it.
//
// If the lock can't be had before ctx ends, fn is not called, and the error is
// l.Lock's. Otherwise Do returns fn's error, joined with a LostError if the lock
// was lost before fn returned (so fn may have been at work together with the
// next holder) and with the error of the release.
func Do(ctx context.Context, l Locker, fn func(ctx context.Context) error) (err error) {
	lease, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	held, cancel := lease.Context(ctx)
	defer func() { // also when fn panics
		cancel()
		releasing, done := context.WithTimeout(context.WithoutCancel(ctx), releaseGrace)
		defer done()
		err = errors.Join(err, lease.Release(releasing))
	}()
	return fn(held)
}
