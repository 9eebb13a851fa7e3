package retry_test

import (
	"context"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/retry"
)

func BenchmarkSuccessAtOnce(b *testing.B) {
	work := func(context.Context) error { return nil }
	b.Run("docent", func(b *testing.B) {
		b.ReportAllocs()
		ctx, p := b.Context(), retry.Exponential(time.Second, 5)
		for b.Loop() {
			_ = retry.Do(ctx, p, work)
		}
	})
	b.Run("backoff", func(b *testing.B) {
		b.ReportAllocs()
		ctx := b.Context()
		for b.Loop() {
			waits := backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(), 5), ctx)
			_ = backoff.Retry(func() error { return work(ctx) }, waits)
		}
	})
}

func BenchmarkValueAtOnce(b *testing.B) {
	b.ReportAllocs()
	ctx, p := b.Context(), retry.Exponential(time.Second, 5)
	for b.Loop() {
		_, _ = retry.Value(ctx, p, func(context.Context) (int, error) { return 1, nil })
	}
}

func BenchmarkOneRetry(b *testing.B) {
	b.ReportAllocs()
	ctx, p := b.Context(), retry.Times(5, 0)
	for b.Loop() {
		_ = retry.Do(ctx, p, failing(1))
	}
}

func TestSuccessAtOnceAllocatesNothing(t *testing.T) {
	ctx, p := t.Context(), retry.Exponential(time.Second, 5)
	n := testing.AllocsPerRun(100, func() {
		_ = retry.Do(ctx, p, func(context.Context) error { return nil })
		_, _ = retry.Value(ctx, p, func(context.Context) (int, error) { return 1, nil })
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
