package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// BenchmarkReentry measures one more Lock and Release of a lock that the caller holds, compared
// with a mutex of the process.
func BenchmarkReentry(b *testing.B) {
	m := newMutex(b, newClient(b, zktest.Shared(b).Addr()), "/bench/reentry")
	owners := map[string]context.Context{
		"goroutine": b.Context(),
		"owner":     lock.ContextWithOwner(b.Context(), lock.NewOwner("bench")),
	}
	for name, ctx := range owners {
		b.Run(name, func(b *testing.B) {
			lease := must.Get(m.Lock(ctx))(b)
			b.ReportAllocs()
			var fault error
			for b.Loop() { // without must: its Helper takes longer than what is measured
				again, err := m.Lock(ctx)
				if err == nil {
					err = again.Release(ctx)
				}
				fault = errors.Join(fault, err)
			}
			must.OK(b, fault)
			mustRelease(b, lease)
		})
	}
	b.Run("sync.Mutex", func(b *testing.B) {
		var mu sync.Mutex
		for b.Loop() {
			mu.Lock()
			mu.Unlock() //nolint:staticcheck // the bare cost is what is measured
		}
	})
}

// BenchmarkUncontendedInSteps measures, in turn, what Lock and Release of a free mutex
// consist of, and reports medians as multiples of the bare create and delete.
func BenchmarkUncontendedInSteps(b *testing.B) {
	c := newClient(b, zktest.Shared(b).Addr())
	ctx := b.Context()
	m := newMutex(b, c, "/bench/steps")
	const dir, inARow = "/bench/steps-bare", 200 // as a lock without contention is used
	must.Get(c.Create(ctx, dir, nil, framework.WithParents()))(b)
	node := []framework.CreateOption{framework.Ephemeral(), framework.Sequential(), framework.Protected()}
	var names []string
	steps := []struct {
		name string
		do   func() error
	}{
		{"bare", func() error { return createAndDelete(ctx, c, dir+"/bare-") }},
		{"node", func() error { return createAndDelete(ctx, c, dir+"/lock-", node...) }},
		{"listed", func() error {
			return createAndDelete(ctx, c, dir+"/lock-", append(slices.Clip(node), framework.ListTo("", &names))...)
		}},
		{"mutex", func() error {
			lease, err := m.Lock(ctx)
			if err != nil {
				return err
			}
			return lease.Release(ctx)
		}},
	}
	took := make([][]time.Duration, len(steps))
	for b.Loop() {
		for i, step := range steps {
			for range inARow {
				start := time.Now()
				must.OK(b, step.do())
				took[i] = append(took[i], time.Since(start))
			}
		}
	}
	median := func(ds []time.Duration) float64 { slices.Sort(ds); return float64(ds[len(ds)/2]) }
	bare := median(took[0])
	b.ReportMetric(bare/1e3, "bare-µs")
	for i, step := range steps[1:] {
		b.ReportMetric(median(took[i+1])/bare, step.name+"/bare")
	}
}

func createAndDelete(ctx context.Context, c *framework.Client, path string, opts ...framework.CreateOption) error {
	created, err := c.Create(ctx, path, []byte("data"), opts...)
	if err != nil {
		return err
	}
	return c.Delete(ctx, created)
}

// BenchmarkUncontended measures Lock and Release of a free mutex, compared with the bare create
// and delete of a znode that it can't do without.
func BenchmarkUncontended(b *testing.B) {
	c := newClient(b, zktest.Shared(b).Addr())
	ctx := b.Context()
	b.Run("mutex", func(b *testing.B) {
		m := newMutex(b, c, "/bench/uncontended")
		for b.Loop() {
			lease := must.Get(m.Lock(ctx))(b)
			must.OK(b, lease.Release(ctx))
		}
	})
	b.Run("create+delete", func(b *testing.B) {
		for b.Loop() {
			path := must.Get(c.Create(ctx, "/bench-bare", nil))(b)
			must.OK(b, c.Delete(ctx, path))
		}
	})
}
