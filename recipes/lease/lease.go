// Package lease has what recipes share whose grants can be lost: the lease, the errors and the
// policy of a loss, and the metadata of contenders. Package lock has the same names.
//
// Stability: stable.
package lease

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// A Lease is a share in a grant of a recipe: the result of one call of a lock's Lock or TryLock. It
// ends when it is released, or when the lock is lost. Any goroutine may use it, and its methods may
// be called concurrently.
type Lease hold.Share

// share returns the lease as the recipes have it.
func (l *Lease) share() *hold.Share { return (*hold.Share)(l) }

// Path returns the path of the lock, as it was given to its constructor. For a Multi it returns the
// names of its members.
func (l *Lease) Path() string { return l.share().Hold().Path }

// Node returns the path of the lock's znode. It is "" for a Multi, whose [Lease.Members] have one
// each.
func (l *Lease) Node() string { return l.share().Hold().Grant.Node() }

// Context returns a context that is derived from parent and ends with the lease. Its cause is the
// [*LostError], or [ErrReleased] after a release. It carries no owner of its own: an owner of
// parent stays. As with every context, call the CancelFunc.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	usercall.Require("parent", parent != nil)
	return l.share().Context(parent)
}

// Lost returns a channel that is closed when the lock is lost, and not by a release. [Lease.Err]
// returns the cause by then. The channel is closed before the ensemble can expire the session, so
// before another client can hold the lock. If the process itself was stopped it is closed too late:
// [Lease.Fence] and [Lease.Guard] are for that.
func (l *Lease) Lost() <-chan struct{} { return l.share().Lost() }

// Err returns nil while the lease is held, then the [*LostError], or [ErrReleased] after a release.
// It notices a deadline that has just passed.
func (l *Lease) Err() error { return l.share().Err() }

// Fence returns a number that grows from each holder of the lock to the next, even if the lock's
// directory was removed and created again. It is the id of the transaction that created the lease's
// znode (its czxid). A store that refuses smaller numbers than it has seen is safe from earlier
// holders that have not noticed their loss yet.
//
// The read lease of a downgrade has the fence of its write lease. Fence is 0 for a Multi, whose
// [Lease.Members] have one each.
func (l *Lease) Fence() int64 { return l.share().Hold().Grant.Fence() }

// Guard returns an operation for a transaction (see [framework.Client.Txn]) in the lock's ensemble, by
// any client and view: its path is the znode's, whatever namespace or chroot the transaction has. The
// transaction fails unless the lease's znode still exists, so only the holder can write by it.
// A transaction with the Guard of a Multi's lease, or of a lease of several permits, always fails,
// with [ErrNoGuard]: use [Lease.Guards].
func (l *Lease) Guard() framework.TxnOp {
	if guards := l.Guards(); len(guards) == 1 && l.share().Members() == nil {
		return guards[0]
	}
	return framework.OpNever(ErrNoGuard)
}

// Guards returns a guard for each znode of the lease: those of a Multi's members, or of the permits
// of a semaphore. A transaction with all of them fails unless all znodes still exist. A Multi's
// members that were released on their own have none, unless all were. For another lock, Guards
// returns its one guard.
func (l *Lease) Guards() []framework.TxnOp { return l.share().Hold().Grant.Guards() }

// Deadline returns the time until which the lease is certainly held, by the proofs so far. No
// ensemble that keeps time grants the lock to another client earlier. The deadline moves on while
// the ensemble proves the session, and never back. A Multi's is the earliest of its members'. After
// the end of the lease the value means nothing.
func (l *Lease) Deadline() time.Time { return l.share().Hold().Grant.Deadline() }

// Members returns the leases of a Multi's members, in the order in which they are locked, and nil
// for another lock. Each has the fence and the guard of its own lock. If one is released before the
// others, the lease of the Multi consists of the rest.
func (l *Lease) Members() []*Lease {
	var members []*Lease
	for _, member := range l.share().Members() {
		members = append(members, (*Lease)(member))
	}
	return members
}

// Release ends the lease. With its owner's last lease it releases the lock. When Release returns,
// the lease is not held, whatever the error.
//
// Release waits until the znode is gone. If ctx ends before that is confirmed, or has ended
// already, the error wraps ctx's. The deletion then continues in the background until the znode is
// gone or its session has ended. If the client abandons the session during Release, the error is
// nil, because the znode ends with the session. Release returns the [*LostError] of a lost lease, and
// [ErrReleased] after an earlier release. If other leases of the owner remain, it sends no request
// and does not check for a deadline that has just passed.
func (l *Lease) Release(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	return cause.Join(ctx, l.share().Release(ctx))
}

// A LossPolicy says when a lease is lost while there is no connection.
type LossPolicy int

const (
	// AtDeadline keeps a lease until its session's deadline, the last moment at which the session
	// certainly exists. It is the default.
	AtDeadline LossPolicy = iota + 1
	// OnSuspend ends a lease as soon as the connection breaks. It is for work that should rather
	// stop too often than run to the deadline.
	OnSuspend
)

// String returns the policy's name.
func (p LossPolicy) String() string {
	switch p {
	case AtDeadline:
		return "AtDeadline"
	case OnSuspend:
		return "OnSuspend"
	}
	return fmt.Sprintf("LossPolicy(%d)", int(p))
}

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
// ([framework.ErrSessionDeadline], [framework.ErrSessionExpired], [framework.ErrClosed]).
type LostError struct {
	Path string // of the lock, or of another recipe's grant, as its user gave it

	// AbsolutePath is the path in the ensemble, as that of a [framework.OpError]. For a Multi it has
	// the paths of all members.
	AbsolutePath string

	Cause error
}

// lostType is the type of a loss for telemetry.
const lostType = errtype.LockLost

// Error returns "lease: lost path: cause". If the cause is the loss of a member, as for a Multi, its
// text is "lost path: cause".
func (e *LostError) Error() string { return "lease: " + e.text() }

func (e *LostError) text() string {
	path := cmp.Or(e.AbsolutePath, e.Path)
	if member, ok := e.Cause.(*LostError); ok { //nolint:errorlint // a cause that wraps a loss has more to say
		return fmt.Sprintf("lost %s: %s", path, member.text())
	}
	return fmt.Sprintf("lost %s: %v", path, e.Cause)
}

// ErrorType returns "lock_lost", whatever the cause: see zktel.ErrorType.
func (e *LostError) ErrorType() string { return lostType }

// Unwrap returns ErrLost and the cause.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Cause} }
