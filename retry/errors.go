package retry

import (
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/internal/errtype"
)

// ErrInvalid is matched by each fault of an argument out of bounds, of a policy or an option, that
// [Validate], [Do] and [Value] report.
var ErrInvalid = errtype.New("retry: invalid argument", "invalid_argument")

// An ExhaustedError is returned by [Do] and [Value] when the policy allowed at
// least one retry and then no more.
type ExhaustedError struct {
	Attempts int           // calls of fn, at least 2
	Elapsed  time.Duration // from the start of Do to the end of the last attempt
	Err      error         // what the last attempt returned
}

// Error returns one line: the number of attempts, the time that they and the
// waits took, and the last attempt's error.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("retry: gave up after %d attempts in %v: %v", e.Attempts, e.Elapsed, e.Err)
}

// Unwrap returns the last attempt's error.
func (e *ExhaustedError) Unwrap() error { return e.Err }

// ErrorType returns the type of the last attempt's error for telemetry, as
// OpenTelemetry's attribute error.type wants it.
func (e *ExhaustedError) ErrorType() string { return errtype.Of(e.Err) }

// Permanent marks err as an error that no retry can fix, and returns nil if err is nil. An fn that
// returns it is not called again, and [Do] returns err itself, without the mark. An error that
// wraps a marked error ends the retries too. Do returns it unchanged, so the mark inside also stops
// an outer Do.
//
// The mark is that of [backoff.Permanent]: each is understood as the other.
func Permanent(err error) error { return backoff.Permanent(err) }

// permanent reports whether err carries the mark of [Permanent], and returns
// err without the marks that are outermost.
func permanent(err error) (ok bool, unmarked error) {
	var mark *backoff.PermanentError
	if !errors.As(err, &mark) {
		return false, err
	}
	for {
		outer, ok := err.(*backoff.PermanentError) //nolint:errorlint // a mark further in keeps the text around it
		if !ok {
			return true, err
		}
		err = outer.Err
	}
}

// A fault says which argument is out of which bound.
type fault struct{ text string }

func faultf(format string, args ...any) error {
	return &fault{fmt.Sprintf(format, args...)}
}

// unless returns the fault of an argument that is out of its bound, nil if it is not.
func unless(within bool, format string, args ...any) error {
	if within {
		return nil
	}
	return faultf("retry: "+format, args...)
}

func (f *fault) Error() string { return f.text }

func (f *fault) Is(target error) bool { return target == ErrInvalid }

// ErrorType returns the error's type for telemetry.
func (f *fault) ErrorType() string { return errtype.Of(ErrInvalid) }
