// Package zkerr has the errors of the client, and the meanings of servers' codes. Package framework
// documents the errors and exports them.
package zkerr

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/internal/errtype"
)

// Errors that a server returns.
var (
	ErrNoNode                  = errtype.New("znode does not exist", "no_node")
	ErrNodeExists              = errtype.New("znode already exists", "node_exists")
	ErrBadVersion              = errtype.New("znode has another version", "bad_version")
	ErrNotEmpty                = errtype.New("znode has children", "not_empty")
	ErrNoChildrenForEphemerals = errtype.New("ephemeral znodes have no children", "no_children_for_ephemerals")
	ErrNoAuth                  = errtype.New("not permitted by the znode's ACL", "no_auth")
	ErrAuthFailed              = errtype.New("credential refused", "auth_failed")
	ErrInvalidACL              = errtype.New("invalid ACL", "invalid_acl")
	ErrBadArguments            = errtype.New("request refused as malformed", "bad_arguments")
	ErrTooLarge                = errtype.New("too large", "too_large")
	ErrNotGzip                 = errtype.New("data is not gzip", "not_gzip")
	ErrUnsupported             = errtype.New("not supported by the server", "unsupported")
	ErrReconfigDisabled        = errtype.New("the servers do not allow reconfiguration", "reconfig_disabled")
	ErrReconfigInProgress      = errtype.New("another reconfiguration is in progress", "reconfig_in_progress")
	ErrNoQuorum                = errtype.New("no quorum of the new configuration is up to date", "no_quorum")
	ErrQuotaExceeded           = errtype.New("quota exceeded: delete znodes, or have an operator raise it with setquota", "quota_exceeded")
	ErrServer                  = errtype.New("server error", "server_error")
)

// Errors of the connection and the session.
var (
	ErrNotConnected    = errtype.New("not connected", "not_connected")
	ErrNotSent         = errtype.New("not sent", "not_sent")
	ErrReadOnly        = errtype.New("the server is read-only", "read_only")
	ErrUnknownOutcome  = errtype.New("outcome unknown", "connection_loss")
	ErrSessionEnded    = errtype.New("session ended", "session_ended")
	ErrSessionExpired  = errtype.NewOf(ErrSessionEnded, "expired", "session_expired")
	ErrSessionDeadline = errtype.NewOf(ErrSessionEnded, "its deadline passed without proof that it exists", "session_deadline")
	ErrClosed          = errtype.New("client closed", "client_closed")
)

// ErrInvalidPath is returned for an invalid path.
var ErrInvalidPath = errtype.New("invalid path", "invalid_path")

// ErrEarlierAttempt is an unknown outcome that is not tried again.
var ErrEarlierAttempt = fmt.Errorf("%w: its reply was lost", ErrUnknownOutcome)

// Retryable reports whether err is of a temporary condition, as package framework documents it.
func Retryable(err error) bool {
	return IsAny(err, ErrNotConnected, ErrUnknownOutcome) &&
		!IsAny(err, context.Canceled, context.DeadlineExceeded, ErrClosed, ErrSessionEnded, ErrEarlierAttempt, ErrTooLarge)
}

// IsAny reports whether err matches one of the targets.
func IsAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
