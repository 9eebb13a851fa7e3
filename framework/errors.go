package framework

import (
	"errors"
	"fmt"
)

// Errors that a server answers. They reach the caller wrapped in an [OpError].
var (
	// ErrNoNode is returned when the znode, or a created znode's parent, does not exist.
	ErrNoNode = errors.New("znode does not exist")
	// ErrNodeExists is returned by Create when the znode exists already.
	ErrNodeExists = errors.New("znode already exists")
	// ErrBadVersion is returned when the znode's version is not the one given.
	ErrBadVersion = errors.New("znode has another version")
	// ErrNotEmpty is returned by Delete when the znode has children.
	ErrNotEmpty = errors.New("znode has children")
	// ErrNoChildrenForEphemerals is returned by Create below an ephemeral znode.
	ErrNoChildrenForEphemerals = errors.New("ephemeral znodes have no children")
	// ErrNoAuth is returned when the znode's ACL forbids the operation.
	ErrNoAuth = errors.New("not permitted by the znode's ACL")
	// ErrAuthFailed is returned by every operation while the server refuses a
	// credential: see [AuthFailed].
	ErrAuthFailed = errors.New("credential refused")
	// ErrInvalidACL is returned when the server refuses an ACL.
	ErrInvalidACL = errors.New("invalid ACL")
	// ErrBadArguments is returned when the server refuses a request as malformed.
	ErrBadArguments = errors.New("request refused as malformed")
	// ErrTooLarge is returned for a request that is longer than the client
	// sends (see [WithMaxPacket]): a server would cut the connection.
	ErrTooLarge = errors.New("request too large")
	// ErrNotGzip is returned, under [WithCompression], for data that is not compressed.
	ErrNotGzip = errors.New("data is not gzip")
	// ErrServer is returned for an error of the server that has no name here.
	ErrServer = errors.New("server error")
)

// Errors of the connection and the session.
var (
	// ErrNotConnected is returned when there was no connection: the request was
	// never sent, so it has had no effect.
	ErrNotConnected = errors.New("not connected")
	// ErrUnknownOutcome is returned when the connection broke, or the context
	// ended, between a request and its answer: it may or may not have had its
	// effect, and may still have it.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrSessionEnded is the root of everything that ends a session. What was
	// bound to the session (see [InSession]) fails with it.
	ErrSessionEnded = errors.New("session ended")
	// ErrSessionExpired is returned when the server said that the session has expired.
	ErrSessionExpired = fmt.Errorf("%w: expired", ErrSessionEnded)
	// ErrSessionDeadline is returned when the client gave its session up,
	// because no server proved in time that the session still stands.
	ErrSessionDeadline = fmt.Errorf("%w: its deadline passed without proof that it stands", ErrSessionEnded)
	// ErrSessionReplaced is returned when a server answered a reconnection with
	// another session than the client's.
	ErrSessionReplaced = fmt.Errorf("%w: replaced by the server", ErrSessionEnded)
	// ErrClosed is returned once the client is closed.
	ErrClosed = errors.New("client closed")
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

// maxShownPath is how much of a path an error shows.
const maxShownPath = 256

func shortened(path string) string {
	if len(path) <= maxShownPath {
		return path
	}
	return fmt.Sprintf("%s… (%d bytes)", path[:maxShownPath], len(path))
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// opError wraps err once, at the exported function; nil stays nil.
func opError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Path: path, Err: err}
}
