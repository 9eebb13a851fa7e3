package lock

import (
	"slices"

	"github.com/docent-go/docent/framework"
)

// Members returns the leases of a [Multi]'s members, in the order of their locking,
// and nil for the lease of another lock. Each has the fence and the guard of its own
// lock. One may be released before the others: the lease of the Multi then
// stands for those that are left.
func (l *Lease) Members() []*Lease {
	if l.hold.joint == nil {
		return nil
	}
	return slices.Clone(l.hold.joint.members)
}

// Guards returns the guards (see [Lease.Guard]) of all members of a [Multi]'s lease,
// to be put into one transaction, which then fails unless all znodes still stand.
// For the lease of another lock it returns its guard alone.
func (l *Lease) Guards() []framework.TxnOp {
	if l.hold.joint == nil {
		return []framework.TxnOp{l.Guard()}
	}
	var guards []framework.TxnOp
	for _, member := range l.hold.joint.members {
		guards = append(guards, member.Guards()...)
	}
	return guards
}
