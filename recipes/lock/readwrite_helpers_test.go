package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

func newReadWrite(t testing.TB, c *framework.Client, path string, opts ...lock.Option) *lock.RWMutex {
	t.Helper()
	rw := must.Get(lock.NewRWMutex(c, path, opts...))(t)
	return rw
}

// asOwner returns a context whose calls are made by a new owner.
func asOwner(t testing.TB, name string) context.Context {
	t.Helper()
	return lock.ContextWithOwner(t.Context(), lock.NewOwner(name))
}

// mustLockAs locks as the owner of ctx, or fails the test.
func mustLockAs(ctx context.Context, t testing.TB, l lock.Locker) *lock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, generous)
	defer cancel()
	lease := must.Get(l.Lock(ctx))(t)
	return lease
}

// mustBeHeld fails the test unless a try to lock is refused since others are there.
func mustBeHeld(ctx context.Context, t testing.TB, l lock.Locker) {
	t.Helper()
	if lease, err := l.TryLock(ctx); lease != nil || !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("TryLock: %v, %v; want no lease and ErrHeld", lease, err)
	}
}

// queueUp calls Lock on a goroutine of its own and returns once its znode is the n-th in the
// queue.
func queueUp(ctx context.Context, t testing.TB, l lock.Locker, observer *framework.Client, path string, n int) <-chan result {
	t.Helper()
	done := lockLater(ctx, l)
	awaitContenders(t, observer, path, n)
	return done
}

// granted waits for the lease that a Lock on another goroutine gets.
func granted(t testing.TB, done <-chan result, what string) *lock.Lease {
	t.Helper()
	got := must.Receive(t, done, what)
	if got.err != nil {
		t.Fatalf("%s: %v", what, got.err)
	}
	return got.lease
}

// mustWait fails the test if one of the Locks returns within a short time.
func mustWait(t testing.TB, what string, waiting ...<-chan result) {
	t.Helper()
	zktest.Never(t, 100*time.Millisecond, what+" is not granted", func() bool {
		for _, done := range waiting {
			select {
			case got := <-done:
				t.Fatalf("%s: Lock returned %v, %v; want it to wait", what, got.lease, got.err)
			default:
			}
		}
		return false
	})
}

// digits returns the number in the name of a contender's znode.
func digits(node string) string { return node[strings.LastIndex(node, "_")+1:] }

// createNode creates a znode as another process would, and returns its path.
func createNode(t testing.TB, c *framework.Client, path string, opts ...framework.CreateOption) string {
	t.Helper()
	node := must.Get(c.Create(t.Context(), path, nil, append(opts, framework.Ephemeral(), framework.WithParents())...))(t)
	return node
}

func deleteNode(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	must.OK(t, c.Delete(t.Context(), path))
}
