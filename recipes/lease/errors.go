package lease

import (
	"fmt"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// Errors of leases.
var (
	// ErrHeld is returned by an attempt that does not wait, when another owner holds what it
	// asks for.
	ErrHeld = errtype.New("held by another owner", "held")
	// ErrReleased is returned by a lease that was released.
	ErrReleased = hold.ErrReleased
	// ErrLost is what every [*LostError] wraps.
	ErrLost = errtype.New("lease: lost", lostType)
	// ErrNodeDeleted is the cause of a loss when another client deleted the lease's znode.
	ErrNodeDeleted = hold.ErrNodeDeleted
	// ErrNoGuard is the reason of a transaction's failure that was to be guarded by the lease of a
	// Multi as a whole: its members have a guard each, see [Lease.Guards].
	ErrNoGuard = errtype.New("a multi has a guard for each member: use Guards", "no_guard")
	// ErrSuspended is the cause of a loss when the connection broke and the policy is
	// [OnSuspend].
	ErrSuspended = hold.ErrSuspended
)

// A LostError says that a lease was lost, and why. It wraps [ErrLost] and the
// cause: [ErrNodeDeleted], [ErrSuspended], or what ended the session or the client
// ([framework.ErrSessionDeadline], [framework.ErrSessionExpired],
// [framework.ErrSessionReplaced], [framework.ErrClosed]).
type LostError struct {
	Path  string // of the lock, or of what else was held
	Cause error
}

// lostType is the type of a loss for telemetry.
const lostType = "lock_lost"

// Error returns "lease: lost path: cause".
func (e *LostError) Error() string { return fmt.Sprintf("lease: lost %s: %v", e.Path, e.Cause) }

// ErrorType returns "lock_lost", whatever the cause: see [framework.ErrorType].
func (e *LostError) ErrorType() string { return lostType }

// Unwrap returns ErrLost and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }
