package zkconn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"

	"github.com/go-zookeeper/zk"
)

// unnamedCode begins the wire client's text for a server's code without a name.
const unnamedCode = "unknown error: "

var errReplyTooLarge = fmt.Errorf("%w: the reply", zkerr.ErrTooLarge)

// translated translates an error of the wire client. An error without a name there is an error of
// the socket: the request may or may not have arrived.
func translated(err error) error {
	if err == nil {
		return nil
	}
	for _, e := range []struct{ wire, ours error }{
		{zk.ErrNoNode, zkerr.ErrNoNode},
		{zk.ErrNodeExists, zkerr.ErrNodeExists},
		{zk.ErrBadVersion, zkerr.ErrBadVersion},
		{zk.ErrNotEmpty, zkerr.ErrNotEmpty},
		{zk.ErrNoChildrenForEphemerals, zkerr.ErrNoChildrenForEphemerals},
		{zk.ErrNoAuth, zkerr.ErrNoAuth},
		{zk.ErrAuthFailed, zkerr.ErrAuthFailed},
		{zk.ErrInvalidACL, zkerr.ErrInvalidACL},
		{zk.ErrBadArguments, zkerr.ErrBadArguments},
		{zk.ErrInvalidPath, zkerr.ErrInvalidPath},
		{zk.ErrNoServer, zkerr.ErrNotConnected},
		{zk.ErrSessionMoved, zkerr.ErrNotConnected}, // refused before it had an effect
		{zk.ErrShortBuffer, zkerr.ErrTooLarge},      // it was not sent: replies are checked
		{zk.ErrAPIError, zkerr.ErrServer},
		{zk.ErrUnknown, zkerr.ErrServer},
		{zk.ErrConnectionClosed, zkerr.ErrUnknownOutcome},
		{zk.ErrClosing, zkerr.ErrUnknownOutcome},
		{zk.ErrSessionExpired, zkerr.ErrUnknownOutcome},
	} {
		if errors.Is(err, e.wire) {
			return e.ours
		}
	}
	if code, ok := strings.CutPrefix(err.Error(), unnamedCode); ok {
		return unnamedError(code)
	}
	return fmt.Errorf("%w: %s", zkerr.ErrUnknownOutcome, err.Error())
}

// unnamedError returns the error for a code without a name in the wire client.
func unnamedError(text string) error {
	code, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		return zkerr.Unnamed(text)
	case code == tap.CodeTooLarge:
		return errReplyTooLarge
	case code == tap.CodeCut:
		return fmt.Errorf("%w: %w", zkerr.ErrUnknownOutcome, errReplyTooLarge)
	}
	switch code := proto.Code(code); code {
	case proto.CodeThrottled, proto.CodeNotReadOnly, proto.CodeAuthRequired, proto.CodeUnimplemented:
		return zkerr.OfCode(code)
	}
	return zkerr.Unnamed(text)
}
