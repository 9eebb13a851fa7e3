// Package recipes has the options that several recipes take. The result of each function is an option
// of the recipes that it names: the compiler refuses it elsewhere. Options of one recipe alone are in
// its package. A constructor reports all faulty options at once.
//
// Stability: stable.
package recipes

import (
	"slices"
	"time"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/lease"
)

// An option has the methods of all recipes. The types of this package's results have those that take it.
type option func(*args.Options)

func (o option) ForBarrier(cfg args.Config)   { o(cfg.Shared()) }
func (o option) ForCache(cfg args.Config)     { o(cfg.Shared()) }
func (o option) ForCounter(cfg args.Config)   { o(cfg.Shared()) }
func (o option) ForDiscovery(cfg args.Config) { o(cfg.Shared()) }
func (o option) ForGroup(cfg args.Config)     { o(cfg.Shared()) }
func (o option) ForLeader(cfg args.Config)    { o(cfg.Shared()) }
func (o option) ForLock(cfg args.Config)      { o(cfg.Shared()) }
func (o option) ForNode(cfg args.Config)      { o(cfg.Shared()) }
func (o option) ForPartition(cfg args.Config) { o(cfg.Shared()) }
func (o option) ForSchedule(cfg args.Config)  { o(cfg.Shared()) }
func (o option) ForSemaphore(cfg args.Config) { o(cfg.Shared()) }

// The types of options, by the recipes that take them. The package of each recipe has a type Option,
// which they implement.
type (
	// A NameOption is an option of all recipes but a counter: see [WithName].
	NameOption interface {
		args.BarrierOption
		args.CacheOption
		args.DiscoveryOption
		args.GroupOption
		args.LeaderOption
		args.LockOption
		args.NodeOption
		args.PartitionOption
		args.ScheduleOption
		args.SemaphoreOption
	}

	// An ACLOption is an option of all recipes but a cache: see [WithACL].
	ACLOption interface {
		args.BarrierOption
		args.CounterOption
		args.DiscoveryOption
		args.GroupOption
		args.LeaderOption
		args.LockOption
		args.NodeOption
		args.PartitionOption
		args.ScheduleOption
		args.SemaphoreOption
	}

	// A LossPolicyOption is an option of the recipes whose leases can be lost: see [WithLossPolicy].
	LossPolicyOption interface {
		args.LeaderOption
		args.LockOption
		args.PartitionOption
		args.ScheduleOption
		args.SemaphoreOption
	}

	// A ContenderOption is an option of the recipes whose contenders queue: locks and semaphores.
	ContenderOption interface {
		args.LockOption
		args.SemaphoreOption
	}

	// A RevocationOption is an option of locks and elections: see [WithRevocation].
	RevocationOption interface {
		args.LeaderOption
		args.LockOption
	}

	// A SettleOption is an option of the recipes that follow members: see [WithSettle].
	SettleOption interface {
		args.GroupOption
		args.PartitionOption
	}
)

// WithName sets a name in telemetry, because metrics have no paths. A Barrier has no
// telemetry, and ignores it.
func WithName(name string) NameOption {
	return option(func(o *args.Options) { o.Name = name })
}

// WithACL sets the ACL of the znodes that the recipe creates, and of parents that are created for
// them. The list must have at least one entry. The default is the client's ACL. The client itself has
// to be allowed to read and to write the znodes of a Node. All members of a group or a partition have
// to be allowed to read each other's znodes, and those of a partition to write them, too.
// All processes that look for instances have to be allowed to read them.
func WithACL(list ...acl.Entry) ACLOption {
	list = slices.Clone(list)
	return option(func(o *args.Options) {
		if len(list) == 0 {
			o.Fault("ACL: must have at least one entry")
		}
		o.ACL = list
	})
}

// WithLossPolicy says when a lease counts as lost while there is no connection. The default is
// [lease.AtDeadline]: an outage that ends before the session's deadline costs no lock and no term, and
// moves no key.
func WithLossPolicy(policy lease.LossPolicy) LossPolicyOption {
	return option(func(o *args.Options) {
		if policy != lease.AtDeadline && policy != lease.OnSuspend {
			o.Fault("loss policy %v: must be AtDeadline or OnSuspend", policy)
		}
		o.LossPolicy = policy
	})
}

// WithData sets the data that [lease.Participant] shows. With [WithoutMetadata] it is all that the
// contenders' znodes hold: Curator's nodeData.
func WithData(data []byte) ContenderOption {
	data = append([]byte{}, data...)
	return option(func(o *args.Options) { o.Data = data })
}

// WithoutMetadata omits the metadata from the contenders' znodes: the creator's owner, host, process
// and time (see [lease.Metadata]). The znodes then hold the same as Curator's: the data of [WithData],
// or the host's IP address as text.
func WithoutMetadata() ContenderOption {
	return option(func(o *args.Options) { o.NoMetadata = true })
}

// WithQueuePosition calls fn with the number of contenders ahead while an acquire waits: whenever the
// call sees a change, and with 0 at the grant. The holders of a semaphore count as one. It costs no
// request, so most changes further ahead stay unseen. The number can also grow, for example if the
// session ended and the call queues again. A goroutine in the acquire calls fn, which delays it. The
// calls of one attempt are sequential. An UnfairMutex has no queue and refuses the option.
func WithQueuePosition(fn func(position int)) ContenderOption {
	return option(func(o *args.Options) {
		if fn == nil {
			o.Fault("queue position: the function must not be nil")
		}
		o.QueuePosition = fn
	})
}

// WithRevocation makes a lock or an election accept requests to release, which Revoke of package lock
// and Curator's Revoker make. fn is called once per request, with the oldest lease of the owner, or
// the lease of the term. It may release the lease, stop the work under it, or do nothing. An owner
// with several leases releases the lock with the last of them. A waiter or candidate that is asked is
// notified when it is granted the lock.
//
// The calls for one holder are sequential, on a separate goroutine. One call may stand for several
// requests that arrive while fn runs or in quick succession. fn may call anything. A release does
// not wait for it, so it may still run when the lease has ended. The client waits for it in
// Close, as for a state listener. If one owner uses several values of a lock, the fn of the value that
// acquired the lock is called.
//
// The lock is revocable in every hold. That costs one read each time that the lock is acquired
// without a wait. An UnfairMutex refuses the option.
func WithRevocation(fn func(l *lease.Lease)) RevocationOption {
	return option(func(o *args.Options) {
		if fn == nil {
			o.Fault("revocation: the function must not be nil")
		}
		o.Revocation = fn
	})
}

// WithSettle waits until the members have not changed for d, and for ten times d at the most: a
// rolling restart is one change, or few. Then the Changes of a group return, and the keys of a
// partition that are served move; those that have no server move at once. d must not be negative. The default is
// 0, no wait, for a group, and a second for a partition.
func WithSettle(d time.Duration) SettleOption {
	return option(func(o *args.Options) {
		if d < 0 {
			o.Fault("settle %v: must not be negative", d)
		}
		o.Settle = d
	})
}
