package lock

import (
	"context"

	"github.com/docent-go/docent/framework"
)

// A Lease is a share in a held lock: what one call of Lock or TryLock returned.
// It ends when it is released, or when the lock is lost. Whoever has it may use
// it, on any goroutine; its methods may be called concurrently.
type Lease struct {
	hold  *hold
	first bool // of the hold's leases

	// guarded by hold.registry.mu
	joined   *hold // a Multi's, that the lease is a part of; nil for none
	released bool
	contexts map[*leaseContext]struct{} // nil until the first
}

type leaseContext struct{ cancel context.CancelCauseFunc }

// Path returns the path of the lock, as it was given to its constructor. For a
// [Multi] it returns the names of its members: see [Multi.Path].
func (l *Lease) Path() string { return l.hold.path }

// Node returns the path of the znode that the lock is held by.
func (l *Lease) Node() string { return l.hold.grant.Node }

// Context returns a context that is derived from parent and ends when the lease
// is lost, with the [*LostError] as its cause, or released, with [ErrReleased].
// It does not make anybody the lock's owner. The CancelFunc has to be called, as
// with every context. [LeaseFromContext] finds the lease by it.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(l.carriedBy(parent))
	lc := &leaseContext{cancel}
	r := l.hold.registry
	r.mu.Lock()
	err := l.errLocked()
	if err == nil {
		if l.contexts == nil {
			l.contexts = make(map[*leaseContext]struct{})
		}
		l.contexts[lc] = struct{}{}
	}
	r.mu.Unlock()
	if err != nil {
		cancel(err)
	}
	return ctx, func() {
		r.mu.Lock()
		delete(l.contexts, lc)
		r.mu.Unlock()
		cancel(context.Canceled)
	}
}

// endContexts ends the lease's contexts with the cause.
func (l *Lease) endContexts(cause error) {
	r := l.hold.registry
	r.mu.Lock()
	contexts := l.contexts
	l.contexts = nil
	r.mu.Unlock()
	for lc := range contexts {
		lc.cancel(cause)
	}
}

// Lost returns a channel that is closed when the lock is lost, and not by a
// release: [Lease.Err] tells the cause by then. It is closed before the
// ensemble can expire the session, so before anybody else can have the lock,
// unless the process itself was stopped: [Lease.Fence] and [Lease.Guard] are
// for that.
func (l *Lease) Lost() <-chan struct{} {
	h := l.hold
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
		if h.err != nil {
			close(h.lost)
		}
	}
	return h.lost
}

// Err returns nil while the lease stands, then the [*LostError], or
// [ErrReleased] once it was released. A deadline that has just passed is noticed by
// this call itself.
func (l *Lease) Err() error {
	l.hold.check()
	l.hold.registry.mu.Lock()
	defer l.hold.registry.mu.Unlock()
	return l.errLocked()
}

// errLocked is Err as far as is known. It needs registry.mu.
func (l *Lease) errLocked() error {
	if l.released {
		return ErrReleased
	}
	return l.hold.err
}

// check takes note of a session that is over.
func (h *hold) check() {
	if h.joint != nil {
		h.joint.check(h)
		return
	}
	if err := h.grant.Hold.Err(); err != nil {
		h.lose(err)
	}
}

// Fence returns a number that grows from each holder of the lock to the next: the
// id of the transaction that created the lease's znode (its czxid). A store that
// refuses what comes with a smaller number than it has seen is safe from
// holders that lost the lock and do not know yet. It grows also when the lock's
// directory was removed and created again. A read lock that its owner took while it
// had the write lock has the write lock's. Today it is known from the creation,
// so ctx is not used, and the error is nil but with [WithLocalHandoff].
func (l *Lease) Fence(context.Context) (int64, error) {
	if err := l.number(); err != nil {
		return 0, opError("fence of", l.hold.path, err)
	}
	return l.hold.grant.Fence(), nil
}

// Guard returns an operation that makes a transaction of the lock's client (see
// [framework.Client.Txn]) fail unless the lease's znode still exists: what
// the transaction writes is written by the lock's holder, or not at all. The transaction fails
// with [framework.ErrNoNode]. With the lease of an [Exclusive] it fails with
// [framework.ErrBadVersion] if another holder's znode has taken the place.
func (l *Lease) Guard() framework.TxnOp {
	if l.hold.guard != nil {
		return l.hold.guard()
	}
	if err := l.number(); err != nil {
		return framework.OpNever(err)
	}
	return framework.OpCheck(l.hold.grant.Node, framework.AnyVersion)
}

// Release ends the lease. The lock is given back with the last lease of its
// owner. It is not held once Release returns, whatever it returns.
//
// Release waits until the znode is gone. If ctx ends before that is confirmed,
// or has ended already, the error wraps ctx's and the deletion goes on in the
// background until the znode is gone or its session has ended. With
// [WithLocalHandoff] it may pass the lock on instead, which takes no time. A lease that
// was lost gives its [*LostError], one that was released already [ErrReleased]. A lease that
// is not its owner's last gives nothing back, and does not ask whether a deadline has just passed.
func (l *Lease) Release(ctx context.Context) error {
	last, err := l.drop()
	if err != nil || !last {
		return err
	}
	ctx = l.hold.held.Releasing(ctx)
	if l.hold.joint != nil {
		err := l.hold.joint.release(ctx)
		l.hold.held.Released(err)
		return err
	}
	return opError("release", l.hold.path, l.hold.release(ctx))
}

// drop ends the lease. It reports whether the lock is to be given back; an error
// says why it is not the lease's any more.
func (l *Lease) drop() (last bool, err error) {
	h := l.hold
	h.registry.mu.Lock()
	if h.soleLocked(l) { // one of several gives nothing back, whatever the clock says
		h.registry.mu.Unlock()
		h.check()
		h.registry.mu.Lock()
	}
	if l.released {
		h.registry.mu.Unlock()
		return false, ErrReleased
	}
	l.released = true
	last = h.registry.dropLocked(h, l)
	err = h.err
	inUse := l.contexts != nil
	h.registry.mu.Unlock()
	if inUse {
		l.endContexts(ErrReleased)
	}
	if h.joint != nil {
		h.joint.multi.forget(h.joint.party, l)
	}
	return last && err == nil, err
}
