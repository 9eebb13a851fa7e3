package grpclock

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/lock"
)

// unavailable are the errors after which a later call may succeed without a change of this service.
var unavailable = [...]error{
	framework.ErrNotConnected, framework.ErrReadOnly, framework.ErrSessionEnded, framework.ErrClosed,
}

// Code returns the status code for an error of a lock, or of [lock.Do]: OK for nil, and
//
//   - Internal if the lock was lost, whatever else went wrong;
//   - Unavailable if ZooKeeper can't be reached, even if that began during the wait, or the client is
//     closed;
//   - Canceled if ctx was cancelled, and DeadlineExceeded if its deadline passed: the caller has
//     ended the call;
//   - Aborted if another owner holds the lock: [lock.ErrHeld], or a [lock.WaitError] that saw a
//     contender;
//   - Unavailable if a wait ended that saw none: ZooKeeper did not reply, and the client had not noticed
//     yet;
//   - Unknown for any other error that has no status of its own, and that status for one that has.
//
// ctx is the call's.
func Code(ctx context.Context, err error) codes.Code {
	usercall.Require("ctx", ctx != nil)
	var waited *lock.WaitError
	switch {
	case err == nil:
		return codes.OK
	case errors.Is(err, lock.ErrLost):
		return codes.Internal
	case isUnavailable(err):
		return codes.Unavailable
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return status.FromContextError(ctx.Err()).Code()
	case errors.Is(err, lock.ErrHeld):
		return codes.Aborted
	case errors.As(err, &waited) && waited.Ahead < 0 && waited.BlockedBy == nil:
		return codes.Unavailable
	case waited != nil:
		return codes.Aborted
	}
	return status.Code(err)
}

func isUnavailable(err error) bool {
	for _, target := range unavailable {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// statusError returns err with its code. The text of an error of docent's, or of a context, names
// hosts, processes and paths, which are not for the peer: it is replaced by the error's type. Errors
// of other code, and errors that have a status of their own and are none of a lock, stay as they are.
func statusError(ctx context.Context, err error) error {
	code := Code(ctx, err)
	if _, ok := status.FromError(err); ok && code == status.Code(err) {
		return err
	}
	switch code {
	case codes.Internal:
		return status.Error(code, "the lock was lost")
	case codes.Unavailable:
		return status.Error(code, "the lock service is unavailable")
	case codes.Aborted:
		return status.Error(code, "the lock is held")
	case codes.Unknown:
		code = status.FromContextError(err).Code() // as a server does with an error without a status
	}
	kind := zktel.ErrorType(err)
	switch {
	case kind == otherType, kind == refusedType:
		return err
	case code == codes.Canceled:
		return status.Error(code, context.Canceled.Error())
	case code == codes.DeadlineExceeded:
		return status.Error(code, context.DeadlineExceeded.Error())
	}
	return status.Error(code, "zookeeper: "+kind)
}

// Types of errors of other code: see [zktel.ErrorType]. The handler's own connection may have been
// refused, too.
const (
	otherType   = "_OTHER"
	refusedType = "connection_refused"
)
