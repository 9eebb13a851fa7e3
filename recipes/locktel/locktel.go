// Package locktel names what recipes emit as spans, metrics and fields of log lines. Which is found
// where is in docs/observability.md.
package locktel

// ScopeName is the instrumentation scope of the locks' spans and metrics.
const ScopeName = "github.com/docent-go/docent/recipes/lock"

// Keys of attributes of the locks' spans and metrics, and of fields of their log
// lines.
const (
	// AttrType is the kind of lock: "mutex", "read", "write", "semaphore_mutex",
	// "unfair_mutex", "multi", "leader".
	AttrType = "zookeeper.lock.type"
	// AttrName is the name that the lock was given; it is left out where there is none.
	AttrName = "zookeeper.lock.name"
	// AttrPath is the lock's path as the ensemble knows it; a Multi's are its
	// members' names. It is never on a metric.
	AttrPath = "zookeeper.lock.path"
	// AttrOutcome is what a call came to: "acquired"; "reentered", by a lease that
	// another goroutine of the same owner had waited for; "held", TryLock's
	// refusal; "timeout", "canceled" or "error"; and, on spans alone, "withdrawn":
	// a Multi left this member's queue for another member's sake.
	AttrOutcome = "zookeeper.lock.outcome"
	// AttrContended says whether somebody else was in the way.
	AttrContended = "zookeeper.lock.contended"
	// AttrQueuePosition is how many stood ahead when a call began to wait.
	AttrQueuePosition = "zookeeper.lock.queue.position"
	// AttrFencingToken is the lease's fence: see lease.Lease.
	AttrFencingToken = "zookeeper.lock.fencing_token"
	// AttrHoldCount is the highest lock count that the owner came to.
	AttrHoldCount = "zookeeper.lock.hold_count"
	// AttrLossReason is why a lock was lost: "session_expired", "lease_deadline",
	// "session_replaced", "node_deleted", "suspended", "client_closed", "other".
	AttrLossReason = "zookeeper.lock.loss.reason"
	// AttrRevocation is true where somebody asked the holder to let go.
	AttrRevocation = "zookeeper.lock.revocation_requested"
	// AttrState is "held" or "waiting".
	AttrState = "zookeeper.lock.state"
	// AttrBlockedBy leads to the trace of who is in the way, as a traceparent: it is
	// on log lines alone, spans have links.
	AttrBlockedBy = "zookeeper.lock.blocked_by"
	// AttrLinkKind is what a link between spans means: "blocked_by" leads from
	// who waits to who is in its way, "acquired_by" from a hold to its acquire.
	AttrLinkKind = "zookeeper.lock.link.kind"
)

// Names of the locks' metrics.
const (
	// MetricAcquireDuration is a histogram of how long it took to get locks, or
	// not to get them, in seconds; its count is that of the attempts.
	MetricAcquireDuration = "zookeeper.lock.acquire.duration"
	// MetricHoldDuration is a histogram of how long locks were held, in seconds.
	MetricHoldDuration = "zookeeper.lock.hold.duration"
	// MetricCount tells how many locks this process holds or waits for.
	MetricCount = "zookeeper.lock.count"
	// MetricLosses counts the locks that were lost.
	MetricLosses = "zookeeper.lock.losses"
)
