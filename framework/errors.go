package framework

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
)

// Errors that a server answers. They reach the caller wrapped in an [OpError].
var (
	// ErrNoNode is returned when the znode, or a created znode's parent, does not exist.
	ErrNoNode = errtype.New("znode does not exist", "no_node")
	// ErrNodeExists is returned by Create when the znode exists already.
	ErrNodeExists = errtype.New("znode already exists", "node_exists")
	// ErrBadVersion is returned when the znode's version is not the one given.
	ErrBadVersion = errtype.New("znode has another version", "bad_version")
	// ErrNotEmpty is returned by Delete when the znode has children.
	ErrNotEmpty = errtype.New("znode has children", "not_empty")
	// ErrNoChildrenForEphemerals is returned by Create below an ephemeral znode.
	ErrNoChildrenForEphemerals = errtype.New("ephemeral znodes have no children", "no_children_for_ephemerals")
	// ErrNoAuth is returned when the znode's ACL forbids the operation.
	ErrNoAuth = errtype.New("not permitted by the znode's ACL", "no_auth")
	// ErrAuthFailed is returned by every operation while the server refuses a
	// credential: see [AuthFailed].
	ErrAuthFailed = errtype.New("credential refused", "auth_failed")
	// ErrInvalidACL is returned when the server refuses an ACL.
	ErrInvalidACL = errtype.New("invalid ACL", "invalid_acl")
	// ErrBadArguments is returned when the server refuses a request as malformed.
	ErrBadArguments = errtype.New("request refused as malformed", "bad_arguments")
	// ErrTooLarge is returned for a request that is longer than the client sends, which had no
	// effect, and for a reply that is longer than the client reads: see [WithMaxPacket]. If such
	// a reply was to a write, the error wraps [ErrUnknownOutcome], too. It is not retried.
	ErrTooLarge = errtype.New("too large", "too_large")
	// ErrNotGzip is returned, under [WithCompression], for data that is not compressed.
	ErrNotGzip = errtype.New("data is not gzip", "not_gzip")
	// ErrUnsupported is returned for what the server that the client is connected to
	// does not know, because it is older than that.
	ErrUnsupported = errtype.New("not supported by the server", "unsupported")
	// ErrReconfigDisabled is returned by Reconfig when the servers are not set up
	// for it (reconfigEnabled).
	ErrReconfigDisabled = errtype.New("the servers do not allow reconfiguration", "reconfig_disabled")
	// ErrReconfigInProgress is returned by Reconfig while another change is made.
	ErrReconfigInProgress = errtype.New("another reconfiguration is in progress", "reconfig_in_progress")
	// ErrNoQuorum is returned by Reconfig when no quorum of the new servers is
	// connected to the leader and up to date.
	ErrNoQuorum = errtype.New("no quorum of the new configuration is up to date", "no_quorum")
	// ErrServer is returned for an error of the server that has no name here.
	ErrServer = errtype.New("server error", "server_error")
)

// Errors of the connection and the session.
var (
	// ErrNotConnected is returned when there was no connection: the request was
	// never sent, so it has had no effect.
	ErrNotConnected = errtype.New("not connected", "not_connected")
	// ErrReadOnly is returned for all but reads while the client is [ReadOnly], and by a server that
	// has lost its quorum. The request has had no effect, unless the error wraps
	// [ErrUnknownOutcome], too: then an earlier attempt of the call may have had. It is not
	// retried.
	ErrReadOnly = errtype.New("the server is read-only", "read_only")
	// ErrUnknownOutcome is returned when the connection broke, or the context
	// ended, between a request and its answer: it may or may not have had its
	// effect, and may still have it.
	ErrUnknownOutcome = errtype.New("outcome unknown", "connection_loss")
	// ErrSessionEnded is the root of everything that ends a session. What was
	// bound to the session (see [InSession]) fails with it.
	ErrSessionEnded = errtype.New("session ended", "session_ended")
	// ErrSessionExpired is returned when the server said that the session has expired.
	ErrSessionExpired = errtype.NewOf(ErrSessionEnded, "expired", "session_expired")
	// ErrSessionDeadline is returned when the client gave its session up,
	// because no server proved in time that the session still stands.
	ErrSessionDeadline = errtype.NewOf(ErrSessionEnded, "its deadline passed without proof that it stands", "session_deadline")
	// ErrSessionReplaced is returned when a server answered a reconnection with
	// another session than the client's.
	ErrSessionReplaced = errtype.NewOf(ErrSessionEnded, "replaced by the server", "session_replaced")
	// ErrClosed is returned once the client is closed.
	ErrClosed = errtype.New("client closed", "client_closed")
)

// An OpError says which operation on which path failed, and why.
type OpError struct {
	Op   string // as in "create", "get", "delete"
	Path string // as the caller gave it
	Err  error
}

// Error returns "framework: op path: reason".
func (e *OpError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("framework: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("framework: %s %s: %v", e.Op, shortened(e.Path), e.Err)
}

// maxShownPath is how much of a path an error shows, in bytes.
const maxShownPath = 256

// shortened returns the path as errors show it, cut between two characters.
func shortened(path string) string {
	if len(path) <= maxShownPath {
		return path
	}
	end := maxShownPath
	for end > maxShownPath-utf8.UTFMax && !utf8.RuneStart(path[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", path[:end], len(path))
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// ErrorType returns the type of the reason: see [ErrorType].
func (e *OpError) ErrorType() string { return errtype.Of(e.Err) }

// ErrorType returns the type of err for telemetry, "" for nil: a short name that
// is stable and one of few. An error of this module has it by a method ErrorType,
// which OpenTelemetry's semconv.ErrorType looks for, too: "no_node" for
// [ErrNoNode], "session_expired" for [ErrSessionExpired]; docs/observability.md
// has them all. Where a context ended it is "canceled" or "deadline_exceeded",
// whatever the operation met with, and for an error of somebody else "_OTHER".
func ErrorType(err error) string { return errtype.Of(err) }

// callError is opError for an exported function that was called with ctx: it joins the cause of
// ctx's end.
func callError(ctx context.Context, op, path string, err error) error {
	return opError(op, path, cause.Join(ctx, err))
}

// opError wraps err once, at the exported function; nil stays nil.
func opError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Path: path, Err: err}
}
