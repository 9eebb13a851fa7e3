package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zktest"
)

// A commons is what a read/write lock guards in a test. The counters find two
// owners that should not be in at once; shared, which only the lock guards, has
// the race detector find them.
type sharedValue struct {
	t                *testing.T
	readers, writers atomic.Int32
	crowd            atomic.Int32 // most readers at once
	shared           int
	fence            int64 // of the latest writer
}

func (w *sharedValue) read(c *framework.Client) {
	n := w.readers.Add(1)
	for most := w.crowd.Load(); n > most && !w.crowd.CompareAndSwap(most, n); {
		most = w.crowd.Load()
	}
	if w.writers.Load() != 0 {
		w.t.Error("a reader beside a writer")
	}
	if _, _, err := c.Exists(context.Background(), "/"); err != nil { // time for others to come
		w.t.Error(err)
	}
	_ = w.shared
	w.readers.Add(-1)
}

func (w *sharedValue) write(lease *lock.Lease) {
	if w.writers.Add(1) != 1 || w.readers.Load() != 0 {
		w.t.Error("a writer that is not alone")
	}
	w.shared++
	fence := lease.Fence()
	if fence <= w.fence {
		w.t.Errorf("fence %d after %d: must grow", fence, w.fence)
	}
	w.fence = fence
	w.writers.Add(-1)
}

func TestReadWriteExclusion(t *testing.T) {
	t.Parallel()
	const clients, goroutines, rounds = 3, 16, 20 // one in ten writes
	server := zktest.Shared(t)
	shared := &sharedValue{t: t}
	var wg sync.WaitGroup
	for n := range clients {
		c := newClient(t, server.Addr())
		rw := newReadWrite(t, c, "/rw/exclusion")
		for g := range goroutines {
			wg.Go(func() {
				for round := range rounds {
					writes := (n+g+round)%10 == 0
					side := rw.Read()
					if writes {
						side = rw.Write()
					}
					lease, err := side.Lock(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					if writes {
						shared.write(lease)
					} else {
						shared.read(c)
					}
					if err := lease.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if want := clients * goroutines * rounds / 10; shared.shared != want {
		t.Errorf("%d writes, want %d", shared.shared, want)
	}
	if shared.crowd.Load() < 2 {
		t.Error("no two readers were in at once")
	}
}

func TestReadWriteRequests(t *testing.T) {
	t.Parallel()
	const path = "/rw/requests"
	server := zktest.Shared(t)
	awaitContenders(t, newClient(t, server.Addr()), path, 0)
	c, proxy := behindProxy(t, server)
	rw := newReadWrite(t, c, path)
	other := mustLockAs(asOwner(t, "reader that keeps the directory"), t, rw.Read())
	t.Cleanup(func() { _ = other.Release(context.Background()) })
	count := func(what string, want int, do func()) {
		t.Helper()
		proxy.ResetRequests()
		do()
		ops := []fault.Op{fault.Create, fault.GetChildren, fault.Delete, fault.Exists}
		got := 0
		for _, rq := range proxy.Requests() {
			if slices.Contains(ops, rq.Op) && strings.HasPrefix(rq.Path, path) { // else it is of the session
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d requests, want %d", what, got, want)
		}
	}
	count("lock and release the read side", 3, func() { mustRelease(t, mustLock(t, rw.Read())) })
	mustRelease(t, other)
	warm := newReadWrite(t, c, path+"-write")
	keep := createNode(t, c, path+"-write/foreign") // the directory stays
	count("lock and release the write side", 3, func() { mustRelease(t, mustLock(t, warm.Write())) })
	held := mustLock(t, warm.Write())
	count("read beside write", 3, func() { mustRelease(t, mustLock(t, warm.Read())) })
	count("re-enter both", 0, func() { mustRelease(t, mustLock(t, warm.Write())) })
	mustRelease(t, held)
	deleteNode(t, c, keep)
}

func TestReadWriteSidesAreLockers(t *testing.T) {
	t.Parallel()
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, "/rw/do")
	for _, side := range []*lock.Side{rw.Read(), rw.Write()} {
		err := lock.Do(t.Context(), side, func(context.Context, *lock.Lease) error {
			if n := side.Held(t.Context()); n != 1 {
				t.Errorf("held %d times inside Do, want 1", n)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := side.Unlock(t.Context()); !errors.Is(err, lock.ErrNotOwner) {
			t.Errorf("Unlock by a stranger: %v, want ErrNotOwner", err)
		}
	}
	view, err := c.Namespace("rw")
	if err != nil {
		t.Fatal(err)
	}
	held := mustLock(t, rw.Write())
	again, err := newReadWrite(t, view, "/do").Write().TryLock(t.Context())
	if err != nil {
		t.Fatalf("re-entry by another view's value: %v", err)
	}
	mustRelease(t, again)
	mustRelease(t, held)
	if held.Path() != "/rw/do" || rw.Path() != "/rw/do" || rw.Read().Path() != "/rw/do" {
		t.Errorf("paths %s, %s, %s; want /rw/do", held.Path(), rw.Path(), rw.Read().Path())
	}
}
