package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/retry"
)

func TestHurryEndsAWaitEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		passed := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(passed) })
		var seen []retry.Failure
		early := retry.Hurry(func(f retry.Failure) <-chan struct{} {
			seen = append(seen, f)
			if f.Attempt == 1 {
				return passed
			}
			return nil
		})
		start := time.Now()
		err := retry.Do(t.Context(), retry.Times(3, time.Minute), failing(2), early)
		if took := time.Since(start); err != nil || took != time.Second+time.Minute {
			t.Errorf("Do: %v after %v, want nil after one short wait and a whole one", err, took)
		}
		if len(seen) != 2 || seen[0].Attempt != 1 || seen[0].Wait != time.Minute {
			t.Errorf("failures %+v, want two", seen)
		}
	})
}

func TestHurryDoesNotOutliveItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan struct{})
	close(closed)
	attempts := 0
	err := retry.Do(ctx, retry.Forever(time.Hour), func(context.Context) error {
		if attempts++; attempts == 5 {
			cancel()
		}
		return errors.New("busy")
	}, retry.Hurry(func(retry.Failure) <-chan struct{} { return closed }))
	if !errors.Is(err, context.Canceled) || attempts != 5 {
		t.Errorf("Do: %v after %d attempts, want Canceled after 5", err, attempts)
	}
}
