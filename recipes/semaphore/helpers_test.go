package semaphore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zktest"
)

// generous bounds what has to happen at some time, on a machine as slow as it may be.
const generous = 30 * time.Second

// pathOf returns a path that is the test's own, also when it is run again.
func pathOf(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/semaphore/%s-%016x", strings.ReplaceAll(t.Name(), "/", "."), rand.Uint64())
}

func newSemaphore(
	t testing.TB, c *framework.Client, path string, permits int, opts ...semaphore.Option,
) *semaphore.Semaphore {
	t.Helper()
	s, err := semaphore.New(c, path, permits, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// permits is a semaphore as a lock.Locker: its holders have n of its permits.
type permits struct {
	*semaphore.Semaphore
	n int
}

func (p permits) Lock(ctx context.Context) (*lock.Lease, error)    { return p.Acquire(ctx, p.n) }
func (p permits) TryLock(ctx context.Context) (*lock.Lease, error) { return p.TryAcquire(ctx, p.n) }

// mustAcquire acquires n permits or fails the test.
func mustAcquire(t testing.TB, s *semaphore.Semaphore, n int) *lease.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	l, err := s.Acquire(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustRelease(t testing.TB, leases ...*lease.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// An outcome is the result of an Acquire on another goroutine.
type outcome struct {
	lease *lease.Lease
	err   error
}

// acquireLater calls Acquire on a goroutine of its own.
func acquireLater(ctx context.Context, s *semaphore.Semaphore, n int) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		l, err := s.Acquire(ctx, n)
		done <- outcome{l, err}
	}()
	return done
}

// granted waits for the lease of acquireLater.
func granted(t testing.TB, done <-chan outcome) *lease.Lease {
	t.Helper()
	got := must.Receive(t, done, "the permits")
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.lease
}

// children returns the names in the directory, as c sees them after a sync.
func children(t testing.TB, c *framework.Client, dir string) []string {
	t.Helper()
	if err := c.Sync(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	names, _, err := c.Children(t.Context(), dir)
	if err != nil {
		return nil // there is no directory yet, or no more
	}
	return names
}

// awaitChildren waits until the directory has n children.
func awaitChildren(t testing.TB, c *framework.Client, dir string, n int) {
	t.Helper()
	zktest.Eventually(t, generous, fmt.Sprintf("%d children of %s", n, dir), func() bool { return len(children(t, c, dir)) == n })
}

// setNumber writes the number of permits as Curator's SharedCount does.
func setNumber(t testing.TB, c *framework.Client, path string, n int32) {
	t.Helper()
	data := binary.BigEndian.AppendUint32(nil, uint32(n))
	if _, err := c.CreateOrSet(t.Context(), path, data, framework.WithParents()); err != nil {
		t.Fatal(err)
	}
}
