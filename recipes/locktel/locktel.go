// Package locktel names what recipes emit as spans, metrics and fields of log lines.
// docs/observability.md says where each name occurs.
//
// Stability: may change.
package locktel

// ScopeName is the instrumentation scope of the locks' spans and metrics.
const ScopeName = "github.com/docent-go/docent/recipes/lock"

// Keys of attributes of the locks' spans and metrics, and of fields of their log
// lines.
const (
	// AttrType is the kind of lock: "mutex", "read", "write", "semaphore_mutex", "unfair_mutex",
	// "multi".
	AttrType = "zookeeper.lock.type"
	// AttrName is the lock's name, if it was given one.
	AttrName = "zookeeper.lock.name"
	// AttrPath is the lock's path in the ensemble; for a Multi, its members' names. No metric has
	// it.
	AttrPath = "zookeeper.lock.path"
	// AttrOutcome is the result of a call:
	//
	//   - "acquired"
	//   - "reentered": another goroutine of the same owner acquired the lock
	//   - "held": TryLock was refused
	//   - "timeout", "canceled", "error"
	//   - "withdrawn", on spans only: a Multi left this member's queue to wait for another member
	AttrOutcome = "zookeeper.lock.outcome"
	// AttrContended says whether another contender blocked the call.
	AttrContended = "zookeeper.lock.contended"
	// AttrQueuePosition is the number of contenders ahead when a call began to wait.
	AttrQueuePosition = "zookeeper.lock.queue.position"
	// AttrFencingToken is the lease's fence: see lease.Lease.
	AttrFencingToken = "zookeeper.lock.fencing_token"
	// AttrHoldCount is the owner's highest lock count; of an event, the count after the re-entry.
	AttrHoldCount = "zookeeper.lock.hold_count"
	// AttrLossReason is why a lock was lost: "session_expired", "lease_deadline",
	// "node_deleted", "suspended", "client_closed", "other".
	AttrLossReason = "zookeeper.lock.loss.reason"
	// AttrRevocation is true if another client asked the holder to release.
	AttrRevocation = "zookeeper.lock.revocation_requested"
	// AttrState is "held" or "waiting".
	AttrState = "zookeeper.lock.state"
	// AttrBlockedBy leads to the trace of the blocking contender, as a traceparent. Only log lines
	// have it; spans have links.
	AttrBlockedBy = "zookeeper.lock.blocked_by"
	// AttrBlockedByProcess is the process of the blocking contender, as in "811 on batch-3", and
	// AttrBlockedByOwner the name of its owner. The spans of waits have them, even if the contender's trace was
	// not sampled.
	AttrBlockedByProcess = "zookeeper.lock.blocked_by.process"
	AttrBlockedByOwner   = "zookeeper.lock.blocked_by.owner"
	// AttrLinkKind is the meaning of a link between spans: "blocked_by" leads from a waiter to the
	// contender that blocks it, "acquired_by" from a hold to its acquire.
	AttrLinkKind = "zookeeper.lock.link.kind"
)

// Names of the locks' metrics.
const (
	// MetricAcquireDuration is a histogram of the duration of acquires, also failed ones, in
	// seconds. Its count is the number of attempts.
	MetricAcquireDuration = "zookeeper.lock.acquire.duration"
	// MetricHoldDuration is a histogram of the duration of holds, in seconds.
	MetricHoldDuration = "zookeeper.lock.hold.duration"
	// MetricCount is the number of locks that this process holds or waits for.
	MetricCount = "zookeeper.lock.count"
	// MetricLosses counts lost locks.
	MetricLosses = "zookeeper.lock.losses"
)

// NodeScopeName is the instrumentation scope of the metrics of kept znodes.
const NodeScopeName = "github.com/docent-go/docent/recipes/node"

// AttrNodeName is the name that a kept znode was given; it is left out if there is none.
const AttrNodeName = "zookeeper.node.name"

// Names of the metrics of kept znodes.
const (
	// MetricNodeCount counts the kept znodes that exist, as far as is known.
	MetricNodeCount = "zookeeper.node.count"
	// MetricNodeCreations counts how often kept znodes were created.
	MetricNodeCreations = "zookeeper.node.creations"
)
