package httplock

import (
	"errors"
	"net/http"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// Status returns the status code for an error of a lock, or of [lock.Do]: 200 for nil, and
//
//   - 500 if the lock was lost, whatever else went wrong: the work may have been interrupted, or
//     may have run together with the next holder's;
//   - 503 if ZooKeeper can't be reached, even if that began during the wait, or the client is closed;
//   - 503, too, if the request's context ended before the lock was held: [ErrRequestEnded];
//   - 409 if another owner holds the lock: [lock.ErrHeld], or a [lock.WaitError] that saw a contender;
//   - 503 if a wait ended that saw none: ZooKeeper did not reply, and the client had not noticed yet;
//   - 500 for any other error.
func Status(err error) int {
	var waited *lock.WaitError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, lock.ErrLost):
		return http.StatusInternalServerError
	case isUnavailable(err):
		return http.StatusServiceUnavailable
	case errors.Is(err, lock.ErrHeld):
		return http.StatusConflict
	case errors.As(err, &waited) && waited.Ahead < 0 && waited.BlockedBy == nil:
		return http.StatusServiceUnavailable
	case waited != nil:
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

// isUnavailable reports whether a later request may succeed without a change of this service: because
// ZooKeeper can't be reached, or the client or the request is at its end.
func isUnavailable(err error) bool {
	return errors.Is(err, framework.ErrNotConnected) || errors.Is(err, framework.ErrReadOnly) ||
		errors.Is(err, framework.ErrSessionEnded) || errors.Is(err, framework.ErrClosed) ||
		errors.Is(err, ErrRequestEnded)
}
