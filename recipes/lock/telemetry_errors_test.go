package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// TestErrorTypes pins the types of the locks' errors, also as OpenTelemetry finds
// them in what the user gets.
func TestErrorTypes(t *testing.T) {
	t.Parallel()
	wrapped := func(err error) error { return fmt.Errorf("lock: lock /path: %w", err) }
	cases := map[string]error{
		"held":              wrapped(lock.ErrHeld),
		"not_owner":         wrapped(lock.ErrNotOwner),
		"upgrade":           wrapped(lock.ErrUpgrade),
		"released":          lock.ErrReleased,
		"lock_lost":         &lock.LostError{Path: "/path", Cause: framework.ErrSessionExpired},
		"node_deleted":      lock.ErrNodeDeleted,
		"suspended":         errSuspended,
		"deadline_exceeded": wrapped(errors.Join(lock.ErrHeld, context.DeadlineExceeded)),
		"client_closed":     wrapped(framework.ErrClosed),
	}
	for want, err := range cases {
		if got := framework.ErrorType(err); got != want {
			t.Errorf("type of %q is %q, want %q", err, got, want)
		}
	}
	if got := semconv.ErrorType(wrapped(lock.ErrHeld)).Value.AsString(); got != "held" {
		t.Errorf("OpenTelemetry says %q, want held", got)
	}
}
