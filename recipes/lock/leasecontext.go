package lock

import "context"

type leaseKey struct{}

// LeaseFromContext returns the lease that ctx is a context of: fn's in [Do], one that
// [Lease.Context] returned, or one derived from them. Where locks are nested it is the
// innermost. It is for code under a lock that was not handed the lease: for its
// [Lease.Fence], its [Lease.Guard], or the [Lease.Members] of a [Multi].
//
// It does not say that the lease stands: [Lease.Err] does. Nor does it make anybody the
// lock's owner: a goroutine that is started with ctx waits for the lock as any other. Who
// releases the lease that Do has makes Do return [ErrReleased].
func LeaseFromContext(ctx context.Context) (*Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}

// carriedBy returns parent with the lease, and with what telemetry has of it.
func (l *Lease) carriedBy(parent context.Context) context.Context {
	if l.first {
		parent = l.hold.held.Carry(parent)
	}
	return context.WithValue(parent, leaseKey{}, l)
}
