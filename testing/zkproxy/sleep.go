package zkproxy

import (
	"context"
	"time"

	"github.com/docent-go/docent/internal/pace"
)

// timerSlack is how late Go's timers may fire: the runtime waits in whole
// milliseconds.
const timerSlack = 1500 * time.Microsecond

// sleepExactly returns at the given time, to within some tens of microseconds where
// the system allows it. It returns ctx's error if ctx ends more than timerSlack
// before.
func sleepExactly(ctx context.Context, due time.Time) error {
	if err := sleep(ctx, due.Add(-timerSlack)); err != nil {
		return err
	}
	if left := time.Until(due); left > 0 {
		nap(left)
	}
	return ctx.Err()
}

// sleep returns at the given time, or with ctx's error when ctx ends. It waits by
// a timer alone, as is needed where time is virtual.
func sleep(ctx context.Context, due time.Time) error {
	left := time.Until(due)
	if left <= 0 {
		return nil
	}
	return pace.Sleep(ctx, left)
}
