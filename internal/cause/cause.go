// Package cause joins the cause of a context's end to the error of an exported function.
//
// A context may end with any error as its cause, even one that a server could return, such as the
// error of another goroutine. If such a cause were part of the errors inside docent, errors.Is
// would take it for a server's error. Therefore functions inside return ctx.Err() alone, recipes use a
// client whose errors leave the cause out, and the exported function adds it: see [Join].
package cause

import (
	"context"
	"errors"
	"strings"

	"github.com/docent-go/docent/internal/errtype"
)

// Join returns err, joined with the cause of ctx if err tells of ctx's end and the cause is
// another error. An exported function calls it, once, on the error that it returns.
func Join(ctx context.Context, err error) error {
	end := ctx.Err()
	if err == nil || end == nil || !errors.Is(err, end) {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(err, cause) {
		return err
	}
	return &joined{err: err, end: end, cause: cause}
}

// Without returns err without the cause that [Join] added to it.
func Without(err error) error {
	if j, ok := err.(*joined); ok { //nolint:errorlint // this very error, as Join returned it
		return j.err
	}
	return err
}

// A joined is an error that tells of a context's end, with the cause of that.
type joined struct{ err, end, cause error }

// Error returns the text of the error, with the cause behind the context's error, or in its place
// if the cause says as much.
func (j *joined) Error() string {
	text, end, cause := j.err.Error(), j.end.Error(), j.cause.Error()
	before, after, found := strings.Cut(text, end)
	switch {
	case !found:
		return text + ": " + cause
	case errors.Is(j.cause, j.end):
		return before + cause + after
	}
	return before + end + ": " + cause + after
}

// Unwrap returns the error and the cause, so that the user's errors.Is matches both.
func (j *joined) Unwrap() []error { return []error{j.err, j.cause} }

// ErrorType returns the type of the error: see [Type].
func (j *joined) ErrorType() string { return typeOf(j.err, j.cause) }

// Type returns the type for telemetry of err, an error of a call with ctx. The cause of ctx's end has
// no part in it, unless that is a lost lease: then the loss is why the call ended.
func Type(ctx context.Context, err error) string {
	if end := ctx.Err(); err == nil || end == nil || !errors.Is(err, end) {
		return errtype.Of(err)
	}
	return typeOf(err, context.Cause(ctx))
}

func typeOf(err, cause error) string {
	if errtype.Of(cause) == errtype.LockLost {
		return errtype.LockLost
	}
	return errtype.Of(err)
}
