package retry

import (
	"context"
	"errors"
	"fmt"
)

// endedAfter returns the error of an operation whose ctx ended after its last
// attempt had failed with err: two facts, even if err is an error of the same
// kind, such as a deadline of the attempt's own.
func endedAfter(ctx context.Context, attempt int, err error) error {
	return fmt.Errorf("retry: %w, after attempt %d: %w", ctx.Err(), attempt, err)
}

// endedDuring returns the error of an operation whose ctx ended while its last
// attempt ran, which then failed with err. If err tells of ctx already, it is that.
func endedDuring(ctx context.Context, attempt int, err error) error {
	if errors.Is(err, ctx.Err()) {
		return err
	}
	return endedAfter(ctx, attempt, err)
}
