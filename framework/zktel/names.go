// Package zktel has the names of what the client tells of itself: the scope of its spans and metrics,
// their attributes, the fields of its log lines, and its metrics. docs/observability.md says which is
// found where.
package zktel

// ScopeName is the instrumentation scope of the client's spans and metrics.
const ScopeName = "github.com/docent-go/docent/framework"

// Keys of attributes of spans and metrics, and of fields of log lines. Those
// that begin with "zookeeper." are docent's, the others OpenTelemetry's.
const (
	// AttrDBSystem is "zookeeper" for every operation.
	AttrDBSystem = "db.system.name"
	// AttrDBOperation is the operation, as ZooKeeper calls it: "getData".
	AttrDBOperation = "db.operation.name"
	// AttrDBNamespace is the client's chroot and namespace; it is left out where
	// there is neither.
	AttrDBNamespace = "db.namespace"
	// AttrDBBatchSize is how many operations a transaction has, from two on.
	AttrDBBatchSize = "db.operation.batch.size"
	// AttrDBStatusCode is the code that the server answered in place of a result.
	AttrDBStatusCode = "db.response.status_code"
	// AttrErrorType is why something failed, as framework.ErrorType returns it.
	AttrErrorType = "error.type"
	// AttrServerAddress is the host of the server that was asked.
	AttrServerAddress = "server.address"
	// AttrServerPort is its port; it is left out where that is 2181.
	AttrServerPort = "server.port"

	// AttrNodePath is a znode's path as the ensemble knows it. It is never on a
	// metric.
	AttrNodePath = "zookeeper.node.path"
	// AttrSessionID is the session's id in hexadecimal. It is never on a metric.
	AttrSessionID = "zookeeper.session.id"
	// AttrConnectionState is a framework.State: "connecting", "connected", "suspended",
	// "lost", "auth_failed", "read_only", "closed".
	AttrConnectionState = "zookeeper.client.connection.state"
	// AttrRetries is how many attempts of an operation failed and were followed
	// by another.
	AttrRetries = "zookeeper.client.operation.retries"
)

// Names of the client's metrics.
const (
	// MetricOperationDuration is a histogram of how long operations took, in
	// seconds, all attempts included.
	MetricOperationDuration = "db.client.operation.duration"
	// MetricConnectionState tells how many of the process's clients are in which
	// state.
	MetricConnectionState = "zookeeper.client.connection.state"
	// MetricTransitions counts changes of a client's state, by the new one.
	MetricTransitions = "zookeeper.client.connection.transitions"
	// MetricSessionExpirations counts sessions that ended by other means than
	// Close.
	MetricSessionExpirations = "zookeeper.client.session.expirations"
	// MetricRetries counts failed attempts that were followed by another.
	MetricRetries = "zookeeper.client.retries"
	// MetricBackgroundDeletes tells how many guaranteed deletions are pending.
	MetricBackgroundDeletes = "zookeeper.client.background.deletes"
	// MetricWatchCount tells how many watches the servers keep for the clients.
	MetricWatchCount = "zookeeper.client.watch.count"
)
