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
		{ErrQuotaExceeded, proto.CodeQuotaExceeded},
	}
}

// OfCode returns the error for a code in a server's reply, nil for [proto.CodeOK].
func OfCode(code proto.Code) error {
	if code == proto.CodeOK {
		return nil
	}
	return ofFault(code)
}

// ofFault is separate from OfCode so that a request that succeeds needs no stack for its frame.
func ofFault(code proto.Code) error {
	switch code {
	case proto.CodeThrottled:
		return answered{fmt.Errorf("%w: the server sheds load", ErrNotConnected), code}
	case proto.CodeAuthRequired:
		return answered{fmt.Errorf("%w: the server requires another one", ErrAuthFailed), code}
	case proto.CodeSessionExpired:
		return answered{fmt.Errorf("%w: code %d", ErrUnknownOutcome, code), code}
	case proto.CodeSessionMoved: // the leader refuses it before it has an effect
		return answered{fmt.Errorf("%w: the session has moved to another server", ErrNotConnected), code}
	case proto.CodeNotReadOnly:
		return answered{ErrReadOnly, code}
	}
	for _, answer := range answers() {
		if answer.code == code {
			return answer.err
		}
	}
	if name := otherNames()[code]; name != "" {
		return answered{fmt.Errorf("%w: %s", ErrServer, name), code}
	}
	return answered{fmt.Errorf("%w: code %d", ErrServer, code), code}
}

// otherNames returns the names of all other codes of ZooKeeper. Servers send hardly any of them.
func otherNames() map[proto.Code]string {
	return map[proto.Code]string{
		-1: "system error", proto.CodeRuntimeInconsistency: "runtime inconsistency", -3: "data inconsistency",
		-4: "connection loss", proto.CodeMarshallingError: "request can't be read", -7: "timeout of an operation",
		-12: "unknown session", -100: "API error", -113: "invalid callback",
		-120: "ephemeral znodes need a global session", proto.CodeNoWatcher: "no such watch", -122: "timeout of the request",
	}
}

// An answered error is one of the code.
type answered struct {
	error
	code proto.Code
}

// Unwrap returns the error without the code.
func (a answered) Unwrap() error { return a.error }

// CodeOf returns the code in the server's reply that err is of, [proto.CodeOK] if there was a result or no reply.
func CodeOf(err error) proto.Code {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return proto.CodeOK
	}
	if a := (answered{}); errors.As(err, &a) {
		return a.code
	}
	for _, answer := range answers() {
		if errors.Is(err, answer.err) {
			return answer.code
		}
	}
	return proto.CodeOK
}

// StatusCode returns the text of [CodeOf] for telemetry, "" if there was a result or no reply. A code that is
// in none of ZooKeeper's ranges, which leave space for future codes (system errors from -1 down, API errors
// from -100 down), is another one. Otherwise a metric would have a series for each number that a server invents.
func StatusCode(err error) string {
	switch code := CodeOf(err); {
	case code == proto.CodeOK:
		return ""
	case code >= -19 && code <= -1, code >= -139 && code <= -100:
		return strconv.Itoa(int(code))
	}
	return otherCode
}

// otherCode replaces a code that ZooKeeper does not have.
const otherCode = "_OTHER"
