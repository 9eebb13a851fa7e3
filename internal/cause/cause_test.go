package cause_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
)

func endedBy(t *testing.T, reason error) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	return ctx
}

func TestJoin(t *testing.T) {
	t.Parallel()
	reason := errors.New("reason")
	for name, tt := range map[string]struct {
		cause error
		err   func(ctx context.Context) error
		text  string
		has   bool // the error matches the cause
	}{
		"adds_a_cause": {
			reason, func(ctx context.Context) error { return fmt.Errorf("op: %w", ctx.Err()) },
			"op: context canceled: reason", true,
		},
		"puts_the_cause_behind_the_end_of_the_context": {
			reason, func(ctx context.Context) error { return fmt.Errorf("op: %w, after 2 attempts", ctx.Err()) },
			"op: context canceled: reason, after 2 attempts", true,
		},
		"replaces_the_end_of_the_context_by_a_cause_that_says_it": {
			fmt.Errorf("gave up: %w", context.Canceled), func(ctx context.Context) error { return ctx.Err() },
			"gave up: context canceled", true,
		},
		"leaves_a_plain_end_alone": {
			nil, func(ctx context.Context) error { return ctx.Err() }, "context canceled", true,
		},
		"leaves_an_error_alone_that_has_the_cause": {
			reason, func(ctx context.Context) error { return fmt.Errorf("%w: %w", ctx.Err(), reason) },
			"context canceled: reason", true,
		},
		"leaves_an_error_alone_that_does_not_tell_of_the_end": {
			reason, func(context.Context) error { return errors.New("boom") }, "boom", false,
		},
		"shows_an_answer_to_another_call_and_does_not_match_it": {
			errNoNode, func(ctx context.Context) error { return ctx.Err() }, "context canceled: no node", false,
		},
		"does_not_match_the_error_of_another_context": {
			context.DeadlineExceeded, func(ctx context.Context) error { return ctx.Err() },
			"context canceled: context deadline exceeded", false,
		},
		"matches_a_loss": {
			errtype.New("lost", errtype.LockLost), func(ctx context.Context) error { return ctx.Err() }, "context canceled: lost", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := endedBy(t, tt.cause)
			plain := tt.err(ctx)
			err := cause.Join(ctx, cause.Join(ctx, plain))
			if err.Error() != tt.text {
				t.Errorf("text %q, want %q", err, tt.text)
			}
			if got := errors.Is(err, context.Cause(ctx)); got != tt.has {
				t.Errorf("errors.Is(%v, cause) = %t", err, got)
			}
			if cause.Without(err).Error() != plain.Error() {
				t.Errorf("without the cause: %v, want %v", cause.Without(err), plain)
			}
		})
	}
}

// What a joined error wraps goes before what its cause does.
func TestJoin_of_typed_errors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cause, err error
		code       int // 0 if there is none
	}{
		"in the error":           {codeError{2}, fmt.Errorf("%w: %w", codeError{1}, context.Canceled), 1},
		"in the cause":           {codeError{2}, context.Canceled, 2},
		"an answer in the cause": {answerError{codeError{3}}, context.Canceled, 0},
	} {
		err := cause.Join(endedBy(t, tt.cause), tt.err)
		var found codeError
		var answer answerError
		errors.As(err, &found)
		if found.code != tt.code || errors.As(err, &answer) {
			t.Errorf("%s: code %d, and an answer %v; want code %d, and no answer", name, found.code, answer, tt.code)
		}
	}
}

// An error of a type counts only if it is the loss itself: a call's error that wraps a loss is of that call.
func TestJoin_of_a_typed_error_with_a_loss(t *testing.T) {
	t.Parallel()
	loss := lossError{}
	for name, tt := range map[string]struct {
		cause, err error
		lost, call bool // what errors.As finds
	}{
		"a loss":                         {loss, context.Canceled, true, false},
		"a wrapped loss":                 {fmt.Errorf("work: %w", loss), context.Canceled, true, false},
		"another call that a loss ended": {callError{loss}, context.Canceled, true, false},
		"the call itself":                {loss, callError{context.Canceled}, true, true},
		"a call that a loss has ended":   {errors.New("reason"), callError{fmt.Errorf("%w: %w", context.Canceled, loss)}, true, true},
		"joined calls":                   {errors.Join(callError{loss}, loss), context.Canceled, true, false},
	} {
		err := cause.Join(endedBy(t, tt.cause), tt.err)
		var lost lossError
		var call callError
		if errors.As(err, &lost) != tt.lost || errors.As(err, &call) != tt.call {
			t.Errorf("%s: %v, want a loss %t and a call %t", name, err, tt.lost, tt.call)
		}
	}
}

// A lossError is as [lease.LostError], and a callError as [lease.WaitError].
type (
	lossError struct{}
	callError struct{ err error }
)

func (lossError) Error() string     { return "lost" }
func (lossError) ErrorType() string { return errtype.LockLost }

func (e callError) Error() string     { return "call: " + e.err.Error() }
func (e callError) Unwrap() error     { return e.err }
func (e callError) ErrorType() string { return errtype.Of(e.err) }

type codeError struct{ code int }

func (e codeError) Error() string { return fmt.Sprintf("code %d", e.code) }

// An answerError has a type, as docent's own errors have.
type answerError struct{ codeError }

func (answerError) ErrorType() string { return "answer" }

var errNoNode = errtype.New("no node", "no_node")

// A loss is the type of what it ends, and no other cause is.
func TestErrorType(t *testing.T) {
	t.Parallel()
	loss := errtype.New("lost", errtype.LockLost)
	for name, tt := range map[string]struct {
		cause, err error
		kind       string
	}{
		"a loss":              {loss, context.Canceled, errtype.LockLost},
		"a wrapped loss":      {fmt.Errorf("work: %w", loss), context.Canceled, errtype.LockLost},
		"another cause":       {errtype.New("no node", "no_node"), context.Canceled, errtype.Canceled},
		"no cause":            {nil, context.Canceled, errtype.Canceled},
		"an error of its own": {loss, errtype.New("no node", "no_node"), "no_node"},
		"no error":            {loss, nil, ""},
	} {
		ctx := endedBy(t, tt.cause)
		if kind := errtype.Of(cause.Join(ctx, tt.err)); kind != tt.kind {
			t.Errorf("%s: type %q, want %q", name, kind, tt.kind)
		}
	}
}

func TestJoin_before_the_end(t *testing.T) {
	t.Parallel()
	if err := cause.Join(t.Context(), context.Canceled); err != context.Canceled { //nolint:errorlint // as it is
		t.Errorf("%v, want the error itself", err)
	}
	if err := cause.Join(endedBy(t, errors.New("reason")), nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}
