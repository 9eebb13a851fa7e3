package retry

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/internal/ctxerr"
)

// endedAfter returns the error of an operation whose ctx ended after its last
// attempt had failed with err: two facts, even if err is an error of the same
// kind, such as a deadline of the attempt's own.
func endedAfter(ctx context.Context, attempt int, err error) error {
	return fmt.Errorf("retry: %w, after attempt %d: %w", ctxerr.Of(ctx), attempt, err)
}

// endedDuring returns the error of an operation whose ctx ended while its last
// attempt ran, which then failed with err. Where err tells of ctx already, only
// what it leaves out is added.
func endedDuring(ctx context.Context, attempt int, err error) error {
	if !errors.Is(err, ctx.Err()) {
		return endedAfter(ctx, attempt, err)
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, ctxerr.CauseOf(ctx))
	}
	return err
}
