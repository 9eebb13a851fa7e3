package zkerr

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/docent-go/docent/internal/proto"
)

// An answer is an error of one code.
type answer struct {
	err  error
	code proto.Code
}

// answers returns the errors that have one code each.
func answers() []answer {
	return []answer{
		{ErrNoNode, proto.CodeNoNode},
		{ErrNodeExists, proto.CodeNodeExists},
		{ErrBadVersion, proto.CodeBadVersion},
		{ErrNotEmpty, proto.CodeNotEmpty},
		{ErrNoChildrenForEphemerals, proto.CodeNoChildrenForEphemerals},
		{ErrNoAuth, proto.CodeNoAuth},
		{ErrAuthFailed, proto.CodeAuthFailed},
		{ErrInvalidACL, proto.CodeInvalidACL},
		{ErrBadArguments, proto.CodeBadArguments},
		{ErrUnsupported, proto.CodeUnimplemented},
		{ErrNoQuorum, proto.CodeNoQuorum},
		{ErrReconfigInProgress, proto.CodeInProgress},
		{ErrReconfigDisabled, proto.CodeReconfigDisabled},
	}
}

// OfCode returns the error for a code in a server's reply, nil for [proto.CodeOK].
func OfCode(code proto.Code) error {
	switch code {
	case proto.CodeOK:
		return nil
	case proto.CodeThrottled:
		return fmt.Errorf("%w: the server sheds load", ErrNotConnected)
	case proto.CodeAuthRequired:
		return fmt.Errorf("%w: the server requires another one", ErrAuthFailed)
	case proto.CodeSessionExpired:
		return fmt.Errorf("%w: code %d", ErrUnknownOutcome, code)
	case proto.CodeSessionMoved: // the leader refuses it before it has an effect
		return fmt.Errorf("%w: the session has moved to another server", ErrNotConnected)
	case proto.CodeNotReadOnly:
		return ErrReadOnly
	}
	for _, answer := range answers() {
		if answer.code == code {
			return answer.err
		}
	}
	return Unnamed(strconv.Itoa(int(code)))
}

// StatusCode returns the code in the server's reply, "" if there was a result or no reply.
func StatusCode(err error) string {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	for _, answer := range answers() {
		if errors.Is(err, answer.err) {
			return strconv.Itoa(int(answer.code))
		}
	}
	if unnamed := (unnamedError{}); errors.As(err, &unnamed) {
		return shownCode(unnamed.code)
	}
	return ""
}

// otherCode replaces a code that ZooKeeper does not have.
const otherCode = "_OTHER"

// shownCode returns the code if it is in ZooKeeper's ranges, which leave space for future codes:
// system errors from -1 down, API errors from -100 down. Otherwise a metric would have a series for
// each number that a server invents.
func shownCode(code string) string {
	n, err := strconv.Atoi(code)
	if err == nil && (n >= -19 && n <= -1 || n >= -139 && n <= -100) {
		return code
	}
	return otherCode
}

// Unnamed returns the error for a code without a name here.
func Unnamed(code string) error { return unnamedError{code} }

// An unnamedError is a server's error with a code without a name here.
type unnamedError struct{ code string }

// Error returns the text of ErrServer, and the code.
func (e unnamedError) Error() string { return fmt.Sprintf("%v: code %s", ErrServer, e.code) }

// Unwrap returns ErrServer.
func (e unnamedError) Unwrap() error { return ErrServer }
