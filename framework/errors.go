package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/zkpath"
)

// Errors that a server returns. The caller gets them wrapped in an [OpError]. Its method Code tells those
// apart that have no name here, such as that of an exceeded quota.
var (
	// ErrNoNode is returned when the znode, or a created znode's parent, does not exist.
	ErrNoNode = zkerr.ErrNoNode
	// ErrNodeExists is returned by Create when the znode exists already.
	ErrNodeExists = zkerr.ErrNodeExists
	// ErrBadVersion is returned when the znode's version is not the given version.
	ErrBadVersion = zkerr.ErrBadVersion
	// ErrNotEmpty is returned by Delete when the znode has children.
	ErrNotEmpty = zkerr.ErrNotEmpty
	// ErrNoAuth is returned when the znode's ACL forbids the operation.
	ErrNoAuth = zkerr.ErrNoAuth
	// ErrAuthFailed is returned by every operation while the server refuses a credential: the
	// client is [AuthFailed].
	ErrAuthFailed = zkerr.ErrAuthFailed
	// ErrTooLarge is returned if a request is longer than the client sends, or a reply longer than
	// it reads; [WithMaxPacket] sets both limits. Such a request had no effect. If such a reply was
	// to a write, the error wraps [ErrUnknownOutcome], too. It is not retried.
	ErrTooLarge = zkerr.ErrTooLarge
	// ErrNotGzip is returned, under [WithCompression], for data that is not compressed.
	ErrNotGzip = zkerr.ErrNotGzip
	// ErrUnsupported is returned for an operation that the connected server does not know, because
	// it is older than the release of ZooKeeper that the error names, or its configuration leaves the operation out. A
	// server that does not know an operation closes the connection after its reply.
	ErrUnsupported = zkerr.ErrUnsupported
)

// Errors of the connection and the session.
var (
	// ErrNotConnected is returned when there was no connection: the request was never sent, so it
	// had no effect. If the error wraps [ErrUnknownOutcome], too, an earlier attempt of the call may
	// have had an effect.
	ErrNotConnected = zkerr.ErrNotConnected
	// ErrNotSent is returned, together with the context's error, if the context ended while the request
	// waited for requests ahead of it to be sent: it was never sent, so it had no effect. If the error wraps
	// [ErrUnknownOutcome], too, an earlier attempt of the call may have had an effect.
	ErrNotSent = zkerr.ErrNotSent
	// ErrReadOnly is returned for all but reads while the client is [ReadOnly], and by a server
	// that has lost its quorum. The request had no effect. If the error wraps [ErrUnknownOutcome],
	// too, an earlier attempt of the call may have had an effect. It is not retried.
	ErrReadOnly = zkerr.ErrReadOnly
	// ErrUnknownOutcome is returned when the connection broke, or the context ended, between a
	// request and its reply. The request may or may not have had its effect, and may still have it.
	ErrUnknownOutcome = zkerr.ErrUnknownOutcome
	// ErrSessionEnded is the root of every error that ends a session. Operations that are bound to
	// the session ([Client.InSession]) fail with it.
	ErrSessionEnded = zkerr.ErrSessionEnded
	// ErrSessionExpired is returned when the server said that the session has expired, or replied to a
	// reconnection with another session than the client's.
	ErrSessionExpired = zkerr.ErrSessionExpired
	// ErrSessionDeadline is returned when the client abandoned its session, because no server
	// proved in time that the session is still valid.
	ErrSessionDeadline = zkerr.ErrSessionDeadline
	// ErrClosed is returned once the client is closed.
	ErrClosed = zkerr.ErrClosed
)

// An OpError says which operation on which path failed, and why.
type OpError struct {
	Op   string // as in "create", "get", "delete"
	Path string // as the caller gave it

	// AbsolutePath is the path in the ensemble, with chroot and namespace, as [Client.AbsolutePath]
	// returns it. The text has this path; if it is empty, Path.
	AbsolutePath string

	Err error
}

// Error returns "framework: op path: reason".
func (e *OpError) Error() string {
	path := cmp.Or(e.AbsolutePath, e.Path)
	if path == "" {
		return fmt.Sprintf("framework: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("framework: %s %s: %v", e.Op, errtype.Path(path), e.Err)
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// Code returns the code in the server's reply, as ZooKeeper's KeeperException.Code has it: -125 for an
// exceeded quota. It is 0 if a server has not refused the operation.
func (e *OpError) Code() int32 { return int32(zkerr.CodeOf(e.Err)) }

// ErrorType returns the type of the reason, as that of package zktel does.
func (e *OpError) ErrorType() string { return errtype.Of(e.Err) }

// callError is opError for an exported function that was called with ctx: it joins the cause of
// ctx's end.
func (c *Client) callError(ctx context.Context, op, path string, err error) error {
	return c.opError(op, path, cause.Join(ctx, err))
}

// opError wraps err once, at the exported function; nil stays nil. The path is the view's, or empty.
func (c *Client) opError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Path: path, AbsolutePath: c.shownPath(path), Err: err}
}

// shownPath returns the path in the ensemble, for an error. What is no path at all stays as it is.
func (c *Client) shownPath(path string) string {
	if !strings.HasPrefix(path, "/") {
		return path
	}
	return c.fullPath(path)
}

// explained returns the error of an operation on the path with what a server's code leaves open: which znode's
// parent or ACL it is about, and why the ACL in the request is invalid.
func explained(err error, op txnKind, path string, list []acl.Entry) error {
	parent, _ := zkpath.Split(path)
	switch {
	case op == txnCreate && errors.Is(err, ErrNoNode):
		return fmt.Errorf("%w: the parent %s", err, errtype.Path(parent))
	case op == txnCreate && errors.Is(err, zkerr.ErrNoChildrenForEphemerals):
		return &errtype.ChildlessError{Err: err, Path: parent}
	case op == txnCreate && errors.Is(err, ErrNoAuth):
		return fmt.Errorf("%w: that of %s gives this client no CREATE", err, errtype.Path(parent))
	case op == txnDelete && errors.Is(err, ErrNoAuth):
		return fmt.Errorf("%w: that of %s gives this client no DELETE", err, errtype.Path(parent))
	case op == txnDelete && errors.Is(err, ErrNotEmpty):
		return fmt.Errorf("%w (DeleteTree deletes them)", err)
	case errors.Is(err, zkerr.ErrInvalidACL) && slices.ContainsFunc(list, func(e acl.Entry) bool { return e.Scheme == "auth" }):
		return fmt.Errorf("%w: an entry of the scheme auth, as of acl.Creator, needs a credential: see WithAuth", err)
	}
	return err
}
