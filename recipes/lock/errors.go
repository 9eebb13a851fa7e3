package lock

import (
	"fmt"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/queue"
)

// Errors of locks. Those of the client (see package framework) come through as
// they are, with the operation and path in front.
var (
	// ErrHeld is returned by TryLock when another owner has the lock.
	ErrHeld = errtype.New("held by another owner", "held")
	// ErrNotOwner is returned by Unlock when the caller has no lease of the lock.
	ErrNotOwner = errtype.New("caller does not own the lock", "not_owner")
	// ErrUpgrade is returned at once by Lock and TryLock of a read/write lock's
	// write side when the caller has the read side: it would wait for itself.
	ErrUpgrade = errtype.New("caller has the read side, which can't be upgraded: release it first", "upgrade")
	// ErrCounterEnd is returned by Lock and TryLock of a read/write lock's read side when the
	// caller has the write side, and the counter of the lock's directory has come to its end
	// (2147483647): other znodes may have the read side's number. Release the write side first.
	ErrCounterEnd = queue.ErrCounterEnd
	// ErrNoGuard is the reason of a transaction's failure that was to be guarded
	// by the lease of an [Exclusive]: all its holders' znodes have one name, and
	// a transaction can't tell them apart.
	ErrNoGuard = errtype.New("an exclusive lock can't guard a transaction: use its fence", "no_guard")
	// ErrReleased is returned by what is asked of a lease that was released.
	ErrReleased = errtype.New("lock: lease was released", "released")
	// ErrLost is what every [*LostError] wraps.
	ErrLost = errtype.New("lock: lost", lostType)
	// ErrNodeDeleted is the cause of a loss when somebody else deleted the
	// lease's znode.
	ErrNodeDeleted = errtype.New("its znode was deleted by somebody else", "node_deleted")
	// ErrSuspended is the cause of a loss when the connection broke and the lock
	// was made with [OnSuspend].
	ErrSuspended = errtype.New("the connection was suspended", "suspended")
)

// A LostError says that a lease was lost, and why. It wraps [ErrLost] and the
// cause: [ErrNodeDeleted], [ErrSuspended], or what ended the session or the client
// ([framework.ErrSessionDeadline], [framework.ErrSessionExpired],
// [framework.ErrSessionReplaced], [framework.ErrClosed]).
type LostError struct {
	Path  string // of the lock
	Cause error
}

// Error returns "lock: lost path: cause".
func (e *LostError) Error() string { return fmt.Sprintf("lock: lost %s: %v", e.Path, e.Cause) }

// ErrorType returns "lock_lost", whatever the cause: see [framework.ErrorType].
func (e *LostError) ErrorType() string { return lostType }

// lostType is the type of a loss for telemetry.
const lostType = "lock_lost"

// Unwrap returns ErrLost and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }

// opError wraps err once, at an exported function; nil stays nil.
func opError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("lock: %s %s: %w", op, path, err)
}
