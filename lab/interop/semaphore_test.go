package interop_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/locktest"
)

func newSemaphore(t testing.TB, c *framework.Client, path string, permits int, opts ...semaphore.Option) *semaphore.Semaphore {
	t.Helper()
	return must.Get(semaphore.New(c, path, permits, opts...))(t)
}

func mustAcquire(t testing.TB, s *semaphore.Semaphore, n int) *lease.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	return must.Get(s.Acquire(ctx, n))(t)
}

// acquires reports whether Curator gets n permits of a semaphore within the limit.
func (a *actor) acquires(t testing.TB, path, permits string, n int, limit time.Duration) bool {
	t.Helper()
	_, ok := must.Get2(a.do("acquire", path, permits, strconv.Itoa(n), strconv.FormatInt(limit.Milliseconds(), 10)).wait())(t)
	return ok
}

// TestCuratorSemaphoreCounts: permits of both libraries count for both.
func TestCuratorSemaphoreCounts(t *testing.T) {
	t.Parallel()
	const permits = "3"
	java, path := newActor(t, curator), pathOf(t)
	s := newSemaphore(t, newClient(t), path, 3)
	ours := mustAcquire(t, s, 2)
	if java.acquires(t, path, permits, 2, wrongGrant) {
		t.Fatal("Curator got two permits of three beside docent's two")
	}
	if !java.acquires(t, path, permits, 1, generous) {
		t.Fatal("Curator did not get the third permit")
	}
	if _, err := s.TryAcquire(t.Context(), 1); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("docent's fourth permit of three: %v, want ErrHeld", err)
	}
	found, err := s.Participants(t.Context())
	if err != nil || len(found) != 3 || !found[2].Holder {
		t.Errorf("participants %+v, %v; want three holders", found, err)
	}
	must.OK(t, ours.Release(t.Context()))
	java.must(t, "release", path)
	must.OK(t, mustAcquire(t, s, 3).Release(t.Context()))
	awaitFree(t, newClient(t), path)
}

// TestCuratorSemaphoreTakesTurns has both libraries contend. An oracle counts docent's permits, and
// Curator's processes take all of them, so no docent lease may be held at the time.
func TestCuratorSemaphoreTakesTurns(t *testing.T) {
	t.Parallel()
	const rounds = 5
	path, oracle := pathOf(t), locktest.NewOracle(t)
	var inUse sync.RWMutex // docent's holders read, Curator's writes
	var wg sync.WaitGroup
	java := newActor(t, curator)
	wg.Go(func() {
		for range rounds {
			if !java.acquires(t, path, "2", 2, generous) {
				t.Error("Curator did not get its permits")
				return
			}
			if !inUse.TryLock() {
				t.Error("Curator got both permits while docent held one")
			} else {
				inUse.Unlock()
			}
			java.must(t, "release", path)
		}
	})
	for range 2 {
		s := newSemaphore(t, newClient(t), path, 2)
		wg.Go(func() {
			for range rounds {
				l, err := s.Acquire(t.Context(), 1)
				if err != nil {
					t.Errorf("Acquire: %v", err)
					return
				}
				oracle.EnterPermits(l, 1, 2)
				inUse.RLock()
				<-time.After(time.Millisecond)
				inUse.RUnlock()
				oracle.Leave(l)
				if err := l.Release(t.Context()); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
	wg.Wait()
	awaitFree(t, newClient(t), path)
}

// TestCuratorsSharedCount: the number of permits is a SharedCount, which Java writes and both read.
func TestCuratorsSharedCount(t *testing.T) {
	t.Parallel()
	java, path := newActor(t, curator), pathOf(t)
	at := path + "-count"
	java.must(t, "count", at, "1")
	s := newSemaphore(t, newClient(t), path, 9, semaphore.WithPermitsAt(at))
	ours := mustAcquire(t, s, 1)
	if java.acquires(t, path, at, 1, wrongGrant) {
		t.Fatal("Curator got a second permit of one")
	}
	waiting := make(chan error, 1)
	go func() {
		l, err := s.Acquire(t.Context(), 2)
		if err == nil {
			err = l.Release(t.Context())
		}
		waiting <- err
	}()
	java.must(t, "count", at, "2") // three, which wakes the contender
	select {
	case err := <-waiting:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(generous):
		t.Fatal("more permits woke no contender")
	}
	must.OK(t, ours.Release(t.Context()))
	n := must.Get(counter.New(newClient(t), at, counter.WithInt32()))(t)
	if v, err := n.Add(t.Context(), 1); err != nil || v != 4 {
		t.Errorf("docent counts to %d, %v; want 4", v, err)
	}
	if got := java.must(t, "count", at, "0"); got[0] != "4" {
		t.Errorf("Curator counts to %s, want 4", got[0])
	}
}
