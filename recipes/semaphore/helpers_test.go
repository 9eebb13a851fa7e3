package semaphore_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/semaphore"
)

func newSemaphore(
	t testing.TB, c *framework.Client, path string, permits int, opts ...semaphore.Option,
) *semaphore.Semaphore {
	t.Helper()
	return must.Get(semaphore.New(c, path, permits, opts...))(t)
}

// mustAcquire acquires n permits or fails the test.
func mustAcquire(t testing.TB, s *semaphore.Semaphore, n int) *lease.Lease {
	t.Helper()
	return must.Get(s.Acquire(recipetest.Patient(t), n))(t)
}

func mustRelease(t testing.TB, leases ...*lease.Lease) {
	t.Helper()
	for _, l := range leases {
		must.OK(t, l.Release(t.Context()))
	}
}

// acquireLater acquires n permits on another goroutine.
func acquireLater(ctx context.Context, s *semaphore.Semaphore, n int) <-chan recipetest.Outcome {
	return recipetest.Later(ctx, func(ctx context.Context) (*lease.Lease, error) { return s.Acquire(ctx, n) })
}

// setNumber writes the number of permits as Curator's SharedCount does.
func setNumber(t testing.TB, c *framework.Client, path string, n int32) {
	t.Helper()
	data := binary.BigEndian.AppendUint32(nil, uint32(n))
	must.Get(c.CreateOrSet(t.Context(), path, data, framework.WithParents()))(t)
}
