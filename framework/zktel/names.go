// Package zktel has the names in the client's telemetry: the scope of its spans and metrics, their
// attributes, the fields of its log lines, and its metrics, and the types of errors. docs/observability.md
// says where each is found.
//
// Stability: may change.
package zktel

import "github.com/docent-go/docent/internal/errtype"

// ScopeName is the instrumentation scope of the client's spans and metrics.
const ScopeName = "github.com/docent-go/docent/framework"

// Keys of attributes of spans and metrics, and of fields of log lines. Those that begin with
// "zookeeper." are docent's, the others OpenTelemetry's.
const (
	// AttrDBSystem is "zookeeper" for every operation.
	AttrDBSystem = "db.system.name"
	// AttrDBOperation is the operation, as ZooKeeper calls it: "getData".
	AttrDBOperation = "db.operation.name"
	// AttrDBNamespace is the client's chroot and namespace; it is omitted if there is neither.
	AttrDBNamespace = "db.namespace"
	// AttrDBBatchSize is how many operations a transaction has, from two on.
	AttrDBBatchSize = "db.operation.batch.size"
	// AttrDBStatusCode is the code that the server returned in place of a result.
	AttrDBStatusCode = "db.response.status_code"
	// AttrErrorType is the type of an error, as [ErrorType] returns it.
	AttrErrorType = "error.type"
	// AttrServerAddress is the host of the server that got the request.
	AttrServerAddress = "server.address"
	// AttrServerPort is the port of that server; it is omitted if it is 2181.
	AttrServerPort = "server.port"

	// AttrNodePath is a znode's path as the ensemble knows it. It is never on a
	// metric.
	AttrNodePath = "zookeeper.node.path"
	// AttrSessionID is the session's id in hexadecimal. It is never on a metric.
	AttrSessionID = "zookeeper.session.id"
	// AttrConnectionState is a framework.State: "connecting", "connected", "suspended",
	// "lost", "auth_failed", "read_only", "closed".
	AttrConnectionState = "zookeeper.client.connection.state"
	// AttrRetries is how many attempts of an operation failed before another attempt.
	AttrRetries = "zookeeper.client.operation.retries"
)

// Names of the client's metrics.
const (
	// MetricOperationDuration is a histogram of the duration of operations in seconds, with all
	// attempts.
	MetricOperationDuration = "db.client.operation.duration"
	// MetricConnectionState is how many of the process's clients are in each state.
	MetricConnectionState = "zookeeper.client.connection.state"
	// MetricTransitions counts changes of a client's state, by the new one.
	MetricTransitions = "zookeeper.client.connection.transitions"
	// MetricSessionExpirations counts sessions that ended without Close.
	MetricSessionExpirations = "zookeeper.client.session.expirations"
	// MetricRetries counts failed attempts after which another attempt followed.
	MetricRetries = "zookeeper.client.retries"
	// MetricBackgroundDeletes is how many guaranteed deletions are pending.
	MetricBackgroundDeletes = "zookeeper.client.background.deletes"
	// MetricWatchCount is how many watches the servers keep for the clients.
	MetricWatchCount = "zookeeper.client.watch.count"
)

// ErrorType returns the type of err for telemetry, "" for nil: one of a few short, stable names. An
// error of this module has its type by a method ErrorType, which OpenTelemetry's semconv.ErrorType
// uses, too. Examples are "no_node" for framework.ErrNoNode and "session_expired" for
// framework.ErrSessionExpired; docs/observability.md has them all. If a context ended, the type is
// "canceled" or "deadline_exceeded", whatever the operation's own error. For an error of other code it is
// "connection_refused" if it wraps syscall.ECONNREFUSED, else "_OTHER".
func ErrorType(err error) string { return errtype.Of(err) }
