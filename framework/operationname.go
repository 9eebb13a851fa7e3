package framework

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// operationName returns what ZooKeeper calls an operation. A watch has no such
// name: by the protocol it is a flag of a read.
func operationName(op string) string {
	switch op {
	case "get", "config":
		return "getData"
	case "children":
		return "getChildren"
	case "set":
		return "setData"
	case "get ACL of":
		return "getACL"
	case "set ACL of":
		return "setACL"
	case "ephemerals":
		return "getEphemerals"
	case "txn", "create all":
		return "multi"
	}
	return op
}

// statusCode returns the code that the server answered, "" where err says that
// it answered a result or nothing.
func statusCode(err error) string {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	for _, answer := range []struct {
		err  error
		code string
	}{ // org.apache.zookeeper.KeeperException.Code
		{ErrNoNode, "-101"},
		{ErrNodeExists, "-110"},
		{ErrBadVersion, "-103"},
		{ErrNotEmpty, "-111"},
		{ErrNoChildrenForEphemerals, "-108"},
		{ErrNoAuth, "-102"},
		{ErrAuthFailed, "-115"},
		{ErrInvalidACL, "-114"},
		{ErrBadArguments, "-8"},
		{ErrUnsupported, "-6"},
		{ErrNoQuorum, "-13"},
		{ErrReconfigInProgress, "-14"},
		{ErrReconfigDisabled, "-123"},
	} {
		if errors.Is(err, answer.err) {
			return answer.code
		}
	}
	if answer := (serverError{}); errors.As(err, &answer) {
		return shownCode(answer.code)
	}
	return ""
}

// otherCode is shown for a code that ZooKeeper does not have.
const otherCode = "_OTHER"

// shownCode returns the code if it lies where ZooKeeper has codes: system errors from -1 down,
// API errors from -100 down, with room for those to come. A metric would have a series for each
// number that a server makes up.
func shownCode(code string) string {
	n, err := strconv.Atoi(code)
	if err == nil && (n >= -19 && n <= -1 || n >= -139 && n <= -100) {
		return code
	}
	return otherCode
}

// A serverError is an answer with a code that has no name here.
type serverError struct{ code string }

func (e serverError) Error() string { return fmt.Sprintf("%v: code %s", ErrServer, e.code) }

// Unwrap returns ErrServer.
func (e serverError) Unwrap() error { return ErrServer }

// key returns the state as attributes have it, as in "auth_failed".
func (s State) key() string {
	switch s {
	case AuthFailed:
		return "auth_failed"
	case ReadOnly:
		return "read_only"
	}
	return strings.ToLower(s.String())
}

// sessionKey returns a session's id as attributes have it.
func sessionKey(id int64) string { return fmt.Sprintf("%#x", id) }
