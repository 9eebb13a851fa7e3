package errtype_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
)

var (
	errEnded   = errtype.New("session ended", "session_ended")
	errExpired = errtype.NewOf(errEnded, "expired", "session_expired")
)

// A typed is an error that has its type from its field and wraps another.
type typed struct {
	kind string
	err  error
}

func (e typed) Error() string     { return e.kind }
func (e typed) ErrorType() string { return e.kind }
func (e typed) Unwrap() error     { return e.err }

func TestOf(t *testing.T) {
	t.Parallel()
	caused, cancel := context.WithCancelCause(t.Context())
	cancel(errExpired)
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	<-late.Done()
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"no error has no type", nil, ""},
		{"a sentinel has its own", errEnded, "session_ended"},
		{"a special sentinel has its own, not the general one's", errExpired, "session_expired"},
		{"what wraps a sentinel has the sentinel's", fmt.Errorf("now: %w", errExpired), "session_expired"},
		{"the first of two sentinels counts", errors.Join(errEnded, errtype.New("b", "b")), "session_ended"},
		{"an untyped error is skipped", errors.Join(errors.New("x"), errEnded), "session_ended"},
		{"the end of a context goes before a sentinel", fmt.Errorf("%w: %w", errEnded, context.Canceled), errtype.Canceled},
		{"a deadline is told from a cancellation", late.Err(), errtype.DeadlineExceeded},
		{"the cause of a context's end has no say", fmt.Errorf("op: %w", cause.Join(caused, caused.Err())), errtype.Canceled},
		{"an error that speaks for what it wraps goes before a context's end", fmt.Errorf("op: %w", typed{"lost", context.Canceled}), "lost"},
		{"and before a sentinel", errors.Join(errEnded, typed{"lost", nil}), "lost"},
		{"an error of somebody else is another", errors.New("boom"), errtype.Other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := errtype.Of(tc.err); got != tc.want {
				t.Errorf("Of(%v) = %q, want %q", tc.err, got, tc.want)
			}
		})
	}
}

func TestSpecialSentinel_matches_the_general_one(t *testing.T) {
	t.Parallel()
	if !errors.Is(errExpired, errEnded) || errors.Is(errEnded, errExpired) {
		t.Error("the special sentinel must match the general one, and not the other way round")
	}
	if got, want := errExpired.Error(), "session ended: expired"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}
