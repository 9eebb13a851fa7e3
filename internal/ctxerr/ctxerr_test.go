package ctxerr_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/docent-go/docent/internal/ctxerr"
)

func TestOf(t *testing.T) {
	reason := errors.New("reason")
	tests := map[string]struct {
		cause error
		text  string
	}{
		"a plain cancellation says so once":          {nil, "context canceled"},
		"a cause is added":                           {reason, "context canceled: reason"},
		"a cause that says it all stands for itself": {fmt.Errorf("gave up: %w", context.Canceled), "gave up: context canceled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(context.Background())
			if err := ctxerr.Of(ctx); err != nil {
				t.Errorf("before the end: %v, want nil", err)
			}
			cancel(tt.cause)
			err := ctxerr.Of(ctx)
			if !errors.Is(err, context.Canceled) || tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("%v: must match context.Canceled and %v", err, tt.cause)
			}
			if err.Error() != tt.text {
				t.Errorf("text %q, want %q", err, tt.text)
			}
		})
	}
}
