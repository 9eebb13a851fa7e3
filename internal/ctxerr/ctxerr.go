// Package ctxerr says why a context ended, in errors that tell a context's cause
// from what an operation met with.
package ctxerr

import "context"

// Of returns an error that matches ctx.Err() and, where that differs, the cause
// of ctx; nil while ctx has not ended.
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == err { //nolint:errorlint // this very error: there is nothing to add then
		return err
	}
	return &ended{err, cause, false}
}

// CauseOf is Of for an error that is added to one that tells of ctx's end
// already: it prints as the cause alone.
func CauseOf(ctx context.Context) error {
	return &ended{ctx.Err(), context.Cause(ctx), true}
}

// Is is errors.Is, blind to the causes in errors of [Of]. Every decision about
// what an operation met with has to be taken by it: a context may end by any
// error, also by one that a server could have answered, such as what made a
// colleague's call fail.
func Is(err, target error) bool { return is(err, target, false) }

// Unwrap returns what err wraps, without the cause in an error of [Of].
func Unwrap(err error) []error {
	switch u := err.(type) { //nolint:errorlint // unwrapping is what this does
	case *ended:
		return []error{u.err}
	case interface{ Unwrap() []error }:
		return u.Unwrap()
	case interface{ Unwrap() error }:
		if inner := u.Unwrap(); inner != nil {
			return []error{inner}
		}
	}
	return nil
}

// ended is the end of a context that has a cause of its own.
type ended struct {
	err, cause error
	brief      bool
}

// Error returns the cause alone where that says what the error says.
func (e *ended) Error() string {
	if e.brief || is(e.cause, e.err, true) {
		return e.cause.Error()
	}
	return e.err.Error() + ": " + e.cause.Error()
}

// Unwrap returns both: users' errors.Is sees the cause.
func (e *ended) Unwrap() []error { return []error{e.err, e.cause} }

func is(err, target error, causes bool) bool {
	for err != nil {
		if err == target { //nolint:errorlint // this is the comparison that errors.Is makes
			return true
		}
		if m, ok := err.(interface{ Is(error) bool }); ok && m.Is(target) {
			return true
		}
		if e, ok := err.(*ended); ok && !causes { //nolint:errorlint // this very error, not what it wraps
			err = e.err
			continue
		}
		switch u := err.(type) { //nolint:errorlint // unwrapping is what this does
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range u.Unwrap() {
				if is(one, target, causes) {
					return true
				}
			}
			return false
		default:
			return false
		}
	}
	return false
}
