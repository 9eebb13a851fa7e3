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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := endedBy(t, tt.cause)
			plain := tt.err(ctx)
			err := cause.Join(ctx, plain)
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

// A loss is the type of what it ends, and no other cause is.
func TestType(t *testing.T) {
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
		if kind := cause.Type(ctx, tt.err); kind != tt.kind {
			t.Errorf("%s: type %q, want %q", name, kind, tt.kind)
		}
		if kind := errtype.Of(cause.Join(ctx, tt.err)); kind != tt.kind {
			t.Errorf("%s: type of the joined error %q, want %q", name, kind, tt.kind)
		}
	}
	if kind := cause.Type(t.Context(), context.Canceled); kind != errtype.Canceled {
		t.Errorf("before the end: type %q, want that of the error", kind)
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
