package lock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/recipes/lock"
)

// TestLocalHandoffInACrowd has owners of two processes contend, some of whom want
// another lock besides, use their fence, give up, or have no hand-off. At
// most one is inside, the fences grow, and nobody waits for ever.
func TestLocalHandoffInACrowd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		relayed(t, 4, func(t relayTest) { localCrowd(t, seed) })
	}
}

func localCrowd(t relayTest, seed uint64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var last int64
	inside := 0
	visit := func(r *rand.Rand, l *lock.Lease) {
		mu.Lock()
		if inside++; inside != 1 {
			t.Errorf("seed %d: %d inside", seed, inside)
		}
		if r.IntN(4) == 0 {
			n, err := l.Fence(t.Context())
			if err != nil || n <= last {
				t.Errorf("seed %d: fence %d (%v) after %d", seed, n, err, last)
			}
			last = n
		}
		mu.Unlock()
		await(time.Duration(r.IntN(5)) * time.Millisecond)
		mu.Lock()
		inside--
		mu.Unlock()
	}
	for range 2 {
		c := virtualClient(t, t.srv)
		m := newMutex(t, c, relayPath, lock.WithLocalHandoff(t.max))
		lockers := []lock.Locker{
			m, m, m, m, newMulti(t, m, newMutex(t, c, "/other")), newMulti(t, newMutex(t, c, "/an-other"), m), newMutex(t, c, relayPath),
		}
		for i, l := range lockers {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			wg.Go(func() {
				for range 12 {
					ctx, cancel := context.WithCancel(t.Context())
					if r.IntN(3) == 0 {
						ctx, cancel = context.WithTimeout(t.Context(), time.Duration(r.IntN(20))*time.Millisecond)
					}
					if lease, err := l.Lock(ctx); err == nil {
						visit(r, memberAt(lease, relayPath))
						if err := lease.Release(t.Context()); err != nil {
							t.Errorf("seed %d: release: %v", seed, err)
						}
					} else if ctx.Err() == nil {
						t.Errorf("seed %d: lock: %v", seed, err)
					}
					cancel()
				}
			})
		}
	}
	wg.Wait()
	synctest.Wait()
	t.nothingIsLeft()
}

// memberAt returns the lease of the lock at path, which may be a Multi's member.
func memberAt(l *lock.Lease, path string) *lock.Lease {
	for _, m := range l.Members() {
		if m.Path() == path {
			return m
		}
	}
	return l
}

func TestLocalHandoffIsAMutexs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := virtualClient(t, virtualServer(t))
		if _, err := lock.NewMutex(c, "/x", lock.WithLocalHandoff(0)); err == nil {
			t.Error("a bound of 0 was accepted")
		}
		if _, err := lock.NewReadWrite(c, "/x", lock.WithLocalHandoff(1)); err == nil {
			t.Error("a read/write lock accepted it")
		}
		if _, err := lock.NewSemaphoreMutex(c, "/x", lock.WithLocalHandoff(1)); err == nil {
			t.Error("a semaphore mutex accepted it")
		}
		if _, err := lock.NewExclusive(c, "/x", lock.WithLocalHandoff(1)); err == nil {
			t.Error("an exclusive lock accepted it")
		}
	})
}
