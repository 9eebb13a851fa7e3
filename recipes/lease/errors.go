package lease

import (
	"fmt"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// Errors of leases.
var (
	// ErrHeld is returned by an attempt that does not wait, if another owner holds the lock.
	ErrHeld = errtype.New("held by another owner", "held")
	// ErrReleased is returned by methods of a lease that was released.
	ErrReleased = hold.ErrReleased
	// ErrLost is what every [*LostError] wraps.
	ErrLost = errtype.New("lease: lost", lostType)
	// ErrNodeDeleted is the cause of a loss if another client deleted the lease's znode.
	ErrNodeDeleted = hold.ErrNodeDeleted
	// ErrNoGuard is the error of a transaction with the [Lease.Guard] of a lease that has several
	// guards, as that of a Multi: use [Lease.Guards].
	ErrNoGuard = errtype.New("the lease has several guards: use Guards", "no_guard")
	// ErrSuspended is the cause of a loss if the connection broke and the policy is [OnSuspend].
	ErrSuspended = hold.ErrSuspended
)

// A LostError says that a lease was lost, and why. It wraps [ErrLost] and the cause:
// [ErrNodeDeleted], [ErrSuspended], or the error that ended the session or the client
// ([framework.ErrSessionDeadline], [framework.ErrSessionExpired], [framework.ErrSessionReplaced],
// [framework.ErrClosed]).
type LostError struct {
	Path  string // of the lock, or of another recipe's grant
	Cause error
}

// lostType is the type of a loss for telemetry.
const lostType = errtype.LockLost

// Error returns "lease: lost path: cause". If the cause is the loss of a member, as for a Multi, its
// text is "lost path: cause".
func (e *LostError) Error() string { return "lease: " + e.text() }

func (e *LostError) text() string {
	if member, ok := e.Cause.(*LostError); ok { //nolint:errorlint // a cause that wraps a loss has more to say
		return fmt.Sprintf("lost %s: %s", e.Path, member.text())
	}
	return fmt.Sprintf("lost %s: %v", e.Path, e.Cause)
}

// ErrorType returns "lock_lost", whatever the cause: see [framework.ErrorType].
func (e *LostError) ErrorType() string { return lostType }

// Unwrap returns ErrLost and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }
