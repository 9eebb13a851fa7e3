package lock_test

import (
	"context"
	"sync"
	"testing"

	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// BenchmarkReentry measures one more Lock and Release of a lock that the caller
// holds, beside what a mutex of the process costs.
func BenchmarkReentry(b *testing.B) {
	m := newMutex(b, newClient(b, zktest.Shared(b).Addr()), "/bench/reentry")
	owners := map[string]context.Context{
		"goroutine": b.Context(),
		"owner":     lock.ContextWithOwner(b.Context(), lock.NewOwner("bench")),
	}
	for name, ctx := range owners {
		b.Run(name, func(b *testing.B) {
			lease, err := m.Lock(ctx)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				again, err := m.Lock(ctx)
				if err != nil {
					b.Fatal(err)
				}
				if err := again.Release(ctx); err != nil {
					b.Fatal(err)
				}
			}
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

// BenchmarkUncontended measures Lock and Release of a free mutex, beside the
// bare create and delete of a znode that it can't do without.
func BenchmarkUncontended(b *testing.B) {
	c := newClient(b, zktest.Shared(b).Addr())
	ctx := b.Context()
	b.Run("mutex", func(b *testing.B) {
		m := newMutex(b, c, "/bench/uncontended")
		for b.Loop() {
			lease, err := m.Lock(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if err := lease.Release(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("create+delete", func(b *testing.B) {
		for b.Loop() {
			path, err := c.Create(ctx, "/bench-bare", nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := c.Delete(ctx, path); err != nil {
				b.Fatal(err)
			}
		}
	})
}
