package contender //nolint:testpackage // it tests what is not exported

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

// TestJoinedErrorsCountEach joins errors of a kind that is left out with errors that are not.
func TestJoinedErrorsCountEach(t *testing.T) {
	late := fmt.Errorf("%w: %w", framework.ErrUnknownOutcome, context.DeadlineExceeded)
	wrapped := func(err error) error { return &framework.OpError{Op: "release", Path: "/a", Err: err} }
	lost := func(cause error) error { return &lease.LostError{Path: "/a", Cause: cause} }
	for name, tc := range map[string]struct {
		err  error
		late bool
	}{
		"lost by the clock":                   {errors.Join(lost(framework.ErrSessionDeadline), lost(framework.ErrSessionDeadline)), true},
		"lost by a suspension":                {lost(lease.ErrSuspended), true},
		"found to be lost":                    {lost(lease.ErrNodeDeleted), false},
		"found to be lost beside a late one":  {errors.Join(late, lost(framework.ErrSessionExpired)), false},
		"lost by the clock, and found beside": {errors.Join(lost(framework.ErrSessionDeadline), lost(lease.ErrNodeDeleted)), false},
		"late":                                {late, true},
		"two late ones":                       {errors.Join(late, wrapped(late)), true},
		"refused":                             {framework.ErrNoAuth, false},
		"refused beside a late one":           {errors.Join(late, wrapped(framework.ErrNoAuth)), false},
		"within another error":                {wrapped(errors.Join(late, framework.ErrNoAuth)), false},
		"without a deletion":                  {wrapped(errors.Join(late, errors.New("not to be deleted in the background either"))), false},
		"a join within a join":                {errors.Join(late, errors.Join(late, framework.ErrNoAuth)), false},
	} {
		if got := isLate(tc.err); got != tc.late {
			t.Errorf("%s: late %v, want %v", name, got, tc.late)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := errors.New("failed")
	cancel(errors.New("the cause"))
	for _, err := range []error{ctx.Err(), context.Cause(ctx), wrapped(ctx.Err()), errors.Join(ctx.Err(), context.Cause(ctx))} {
		if unlessEnded(ctx, err) != nil {
			t.Errorf("%v says more than the end of the context", err)
		}
	}
	if got := unlessEnded(ctx, errors.Join(ctx.Err(), failed)); !errors.Is(got, failed) {
		t.Errorf("%v: the function's own error is lost", got)
	}
}
