package lock

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// Errors of locks. Those of the client (see package framework) come through as
// they are, with the operation and path in front.
var (
	// ErrHeld is returned by TryLock when another owner holds the lock.
	ErrHeld = lease.ErrHeld
	// ErrReleased is returned by what is asked of a lease that was released.
	ErrReleased = lease.ErrReleased
	// ErrLost is what every [*LostError] wraps.
	ErrLost = lease.ErrLost
	// ErrNodeDeleted is the cause of a loss when another client deleted the lease's znode.
	ErrNodeDeleted = lease.ErrNodeDeleted
	// ErrSuspended is the cause of a loss when the connection broke and the lock
	// was made with [OnSuspend].
	ErrSuspended = lease.ErrSuspended
	// ErrNotOwner is returned by Unlock when the caller has no lease of the lock.
	ErrNotOwner = errtype.New("caller does not own the lock", "not_owner")
	// ErrUpgrade is returned at once by Lock and TryLock of a read/write lock's
	// write side when the caller has the read side: it would wait for itself.
	ErrUpgrade = errtype.New("caller has the read side, which can't be upgraded: release it first", "upgrade")
	// ErrCounterEnd is returned by Lock and TryLock of a read/write lock's read side when the
	// caller has the write side, and the counter of the lock's directory has come to its end
	// (2147483647): other znodes may have the read side's number. Release the write side first.
	ErrCounterEnd = waitqueue.ErrCounterEnd
	// ErrNoGuard is the reason of a transaction's failure that was to be guarded by the lease of a
	// [Multi] as a whole: its members have a guard each.
	ErrNoGuard = lease.ErrNoGuard
)

// callError is opError for an exported function that was called with ctx: it joins the cause of
// ctx's end.
func callError(ctx context.Context, op, path string, err error) error {
	return opError(op, path, cause.Join(ctx, err))
}

// opError wraps err once, at an exported function; nil stays nil.
func opError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lock: %s %s: %w", op, path, err)
}
