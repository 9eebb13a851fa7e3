package chaos_test

import (
	"context"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
)

// permits is how many permits the semaphore has.
const permits = 3

// tookSeveral counts grants of several permits at once.
const tookSeveral = "acquired several permits at once"

func (w *worker) takers() []errand {
	return []errand{{"taker 1", w.taker, shortRest}, {"taker 2", w.taker, shortRest}}
}

// A permitLocker is a semaphore as a lock.Locker, of which it acquires n permits at a time.
type permitLocker struct {
	*semaphore.Semaphore
	n int
}

func (s permitLocker) Lock(ctx context.Context) (*lock.Lease, error) { return s.Acquire(ctx, s.n) }

func (s permitLocker) TryLock(ctx context.Context) (*lock.Lease, error) {
	return s.TryAcquire(ctx, s.n)
}

// taker acquires one to three permits together, and holds and releases them.
func (w *worker) taker(ctx context.Context, t task) {
	path := w.path("permits")
	s := sound(semaphore.New(w.client, path, permits))
	e := w.entry(history.Semaphore(permits), path, t)
	e.Shared, e.Permits = true, 1+t.rand.IntN(permits)
	h, err := w.take(ctx, t, e, permitLocker{s, e.Permits})
	if err != nil {
		return
	}
	if w.hold(h, t) && e.Permits > 1 {
		w.did(tookSeveral)
	}
	release(h)
}
