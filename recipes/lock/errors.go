package lock

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// Errors of locks. Errors of the client (see package framework) are returned with the operation and
// path in front.
var (
	// ErrHeld is returned by TryLock when another owner holds the lock.
	ErrHeld = lease.ErrHeld
	// ErrReleased is returned by methods of a lease that was released.
	ErrReleased = lease.ErrReleased
	// ErrLost is what every [*LostError] wraps.
	ErrLost = lease.ErrLost
	// ErrNodeDeleted is the cause of a loss if another client deleted the lease's znode.
	ErrNodeDeleted = lease.ErrNodeDeleted
	// ErrNotOwner is returned by Unlock when the caller has no lease of the lock.
	ErrNotOwner = errtype.New("caller does not own the lock", "not_owner")
	// ErrUpgrade is returned at once by Lock and TryLock of a read/write lock's write side if the
	// caller holds the read side: it would wait for itself.
	ErrUpgrade = errtype.New("caller has the read side, which can't be upgraded: release it first", "upgrade")
	// ErrMixed is returned by Lock and TryLock if another kind of lock is on the path, because both
	// would be granted: see the package's section on kinds.
	ErrMixed = waitqueue.ErrMixed
	// ErrCounterEnd is returned by Lock and TryLock of a read/write lock's read side to a caller
	// that holds the write side. The counter of the lock's directory has come to its end
	// (2147483647), so other znodes may have the read side's number. Release the write side first.
	ErrCounterEnd = waitqueue.ErrCounterEnd
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
	return fmt.Errorf("lock: %s %s: %w", op, errtype.Path(path), err)
}
