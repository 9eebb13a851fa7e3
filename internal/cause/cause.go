// Package cause joins the cause of a context's end to the error of an exported function.
//
// A context may end with any error as its cause, even one that a server could return, such as the
// error of another goroutine. It says why the context ended, and nothing about the call. So a joined
// error shows the cause, and matches what the cause matches, but for docent's own errors and those of
// contexts: code that decides by these is never misled. A lost lease is matched: it ends contexts
// so that calls learn of it.
package cause

import (
	"context"
	"errors"
	"reflect"
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
	if j := (*joined)(nil); errors.Is(err, cause) || errors.As(err, &j) && errors.Is(j.cause, cause) {
		return err
	}
	return &joined{err: err, end: end, cause: cause}
}

// Without returns err without the cause that [Join] added to it, for code that goes on to decide by err: package retry
// joins the cause, too, and not all that framework compares with is an answer.
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

// Unwrap returns the error without the cause.
func (j *joined) Unwrap() error { return j.err }

// Is reports whether the cause matches target, unless target is an answer.
func (j *joined) Is(target error) bool {
	if target == context.Canceled || target == context.DeadlineExceeded || errtype.IsAnswer(target) {
		return false
	}
	return errors.Is(j.cause, target)
}

// As sets target to an error of its type in the error, else to one in the cause, unless that is an answer, or
// another call's error, even one that wraps a loss.
func (j *joined) As(target any) bool {
	if errors.As(j.err, target) {
		return true
	}
	found := reflect.New(reflect.TypeOf(target).Elem())
	if !errors.As(j.cause, found.Interface()) {
		return false
	}
	typed, ok := reflect.TypeAssert[interface{ ErrorType() string }](found.Elem())
	if ok && !isLoss(typed) {
		return false
	}
	reflect.ValueOf(target).Elem().Set(found.Elem())
	return true
}

// isLoss reports whether the error is a loss by itself, and not only by what it wraps.
func isLoss(typed interface{ ErrorType() string }) bool {
	err, _ := typed.(error)
	return typed.ErrorType() == errtype.LockLost && errtype.Of(errors.Unwrap(err)) != errtype.LockLost
}

// ErrorType returns the type of the error, but that of the cause if it is a loss: then the loss is why
// the call ended.
func (j *joined) ErrorType() string {
	if errtype.Of(j.cause) == errtype.LockLost {
		return errtype.LockLost
	}
	return errtype.Of(j.err)
}
