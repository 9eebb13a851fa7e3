package lease

import (
	"context"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// A Lease is a share in what a recipe has granted: what one call of a lock's Lock or TryLock
// returned. It ends when it is released, or when the lock is lost. Whoever has it may use it, on
// any goroutine; its methods may be called concurrently.
type Lease struct {
	share   hold.Share
	members []*Lease // of a Multi's lease; nil for others; immutable
}

// Path returns the path of the lock, as it was given to its constructor. For a Multi it returns the
// names of its members.
func (l *Lease) Path() string { return l.share.Hold().Path }

// Node returns the path of the znode that the lock is held by; "" for a Multi, whose [Lease.Members]
// have one each.
func (l *Lease) Node() string { return l.share.Hold().Grant.Node() }

// Context returns a context that is derived from parent and ends when the lease is lost, with the
// [*LostError] as its cause, or released, with [ErrReleased]. It makes nobody the lock's owner.
// The CancelFunc has to be called, as with every context.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	return l.share.Context(parent)
}

// Lost returns a channel that is closed when the lock is lost, and not by a release: [Lease.Err]
// returns the cause by then. It is closed before the ensemble can expire the session, so before
// another client can have the lock, unless the process itself was stopped: [Lease.Fence] and
// [Lease.Guard] are for that.
func (l *Lease) Lost() <-chan struct{} { return l.share.Lost() }

// Err returns nil while the lease is held, then the [*LostError], or [ErrReleased] once it was
// released. This call itself notices a deadline that has just passed.
func (l *Lease) Err() error { return l.share.Err() }

// Fence returns a number that grows from each holder of the lock to the next: the id of the
// transaction that created the lease's znode (its czxid). A store that refuses what comes with a
// smaller number than it has seen is safe from holders that lost the lock and do not know yet. The
// number grows also when the lock's directory was removed and created again. A read lock that its
// owner took while it had the write lock has the write lock's. It is 0 for a Multi, whose
// [Lease.Members] have one each.
func (l *Lease) Fence() int64 { return l.share.Hold().Grant.Fence() }

// Guard returns an operation that makes a transaction of the lock's client (see
// [framework.Client.Txn]) fail unless the lease's znode still exists: the lock's holder writes what
// the transaction writes, or nobody does. For a Multi see [Lease.Guards]; a transaction with the
// Guard of a Multi's lease always fails, with [ErrNoGuard].
func (l *Lease) Guard() framework.TxnOp { return l.share.Hold().Grant.Guard() }

// Guards returns the guards of all members of a Multi's lease, to be put into one transaction, which
// then fails unless all znodes still exist. For the lease of another lock it returns its guard
// alone.
func (l *Lease) Guards() []framework.TxnOp {
	if l.members == nil {
		return []framework.TxnOp{l.Guard()}
	}
	var guards []framework.TxnOp
	for _, member := range l.members {
		guards = append(guards, member.Guards()...)
	}
	return guards
}

// Deadline returns until when the lease is certainly held, by what is proven now: no ensemble that keeps
// time can grant the lock to another client earlier. It moves on while the ensemble proves the session,
// and never back. A Multi's is the earliest of its members'. After the end of the lease it says nothing.
func (l *Lease) Deadline() time.Time { return l.share.Hold().Grant.Deadline() }

// Members returns the leases of a Multi's members, in the order of their locking, and nil for the
// lease of another lock. Each has the fence and the guard of its own lock. One may be released
// before the others: the lease of the Multi then consists of those that are left.
func (l *Lease) Members() []*Lease { return slices.Clone(l.members) }

// Release ends the lease. The lock is released with the last lease of its owner. It is not held once
// Release returns, whatever it returns.
//
// Release waits until the znode is gone. If ctx ends before that is confirmed, or has ended
// already, the error wraps ctx's and the deletion goes on in the background until the znode is gone or
// its session has ended. A lease that was lost gives its [*LostError], one that was released
// already [ErrReleased]. A lease that is not its owner's last gives nothing back, and does not ask
// whether a deadline has just passed.
func (l *Lease) Release(ctx context.Context) error {
	return cause.Join(ctx, l.share.Release(ctx))
}
