package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/worlds"
)

func TestOwnerlessExclusion(t *testing.T) {
	t.Parallel()
	const clients, goroutines, rounds = 3, 16, 5
	forOwnerless(t, "/ownerless/exclusion", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		var (
			wg      sync.WaitGroup
			holders = make(chan struct{}, 1) // full while somebody is in
			shared  int                      // unguarded but by the lock: -race sees two holders
			last    int64
		)
		enter := func(lease *lock.Lease) {
			select {
			case holders <- struct{}{}:
			default:
				t.Error("two holders at once")
			}
			shared++
			if fence := lease.Fence(); fence <= last {
				t.Errorf("fence %d after %d: must grow", fence, last)
			} else {
				last = fence
			}
			<-holders
		}
		for range clients {
			l := kind.lock(t, w.Client(t), path)
			for range goroutines {
				wg.Go(func() {
					for range rounds {
						lease, err := l.Lock(context.Background())
						if err != nil {
							t.Error(err)
							return
						}
						enter(lease)
						if err := lease.Release(context.Background()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if want := clients * goroutines * rounds; shared != want {
			t.Errorf("%d acquisitions, want %d", shared, want)
		}
	})
}

// TestOwnerlessTryExclusion has nobody wait: of all who try, one at a time has
// the lock, and in the end it is free.
func TestOwnerlessTryExclusion(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/try-exclusion", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		observer := w.Client(t)
		var (
			wg             sync.WaitGroup
			mu             sync.Mutex
			had            int
			holders        = make(chan struct{}, 1)
			count, retries = 6, 30
		)
		for i := range count {
			c := observer
			if i%2 == 0 {
				c = w.Client(t)
			}
			l := kind.lock(t, c, path)
			wg.Go(func() {
				for range retries {
					lease, err := l.TryLock(t.Context())
					if errors.Is(err, lock.ErrHeld) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					select {
					case holders <- struct{}{}:
					default:
						t.Error("two holders at once")
					}
					mu.Lock()
					had++
					mu.Unlock()
					<-holders
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if had == 0 {
			t.Error("nobody ever had the lock")
		}
		mustRelease(t, mustLock(t, kind.lock(t, observer, path)))
	})
}

func TestOwnerlessTryIsRefusedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/refused", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		holder := w.Client(t)
		held := mustTry(t, kind.lock(t, holder, path))
		awaitEphemerals(t, holder, path, 1)
		c, proxy := onWay(t, w)
		l := kind.lock(t, c, path)
		proxy.ResetRequests()
		mustRefuse(t, l)
		if ops := operations(proxy); len(ops) != 1 {
			t.Errorf("requests %v to be refused, want one", ops)
		}
		mustRefuse(t, kind.lock(t, holder, path)) // by the holder's own client, too
		if found := ephemerals(t, holder, path); len(found) != 1 || found[0] != held.Node() {
			t.Errorf("znodes %v, want the holder's %s alone", found, held.Node())
		}
		mustHold(t, holder, held)
		mustRelease(t, held)
		mustSync(t, c, path) // its server may be behind by a moment
		mustRelease(t, mustTry(t, l))
	})
}

// TestOwnerlessIsNotReentrant locks twice as one owner.
func TestOwnerlessIsNotReentrant(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/reentry", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		c := w.Client(t)
		l := kind.lock(t, c, path)
		owned := lock.ContextWithOwner(t.Context(), lock.NewOwner("one"))
		held, err := l.Lock(owned)
		if err != nil {
			t.Fatal(err)
		}
		if lease, err := l.TryLock(owned); lease != nil || !errors.Is(err, lock.ErrHeld) {
			t.Errorf("TryLock by the owner: %v, %v; want ErrHeld", lease, err)
		}
		ctx, cancel := context.WithTimeout(owned, 200*time.Millisecond)
		defer cancel()
		if lease, err := l.Lock(ctx); lease != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock by the owner: %v, %v; want an error that matches DeadlineExceeded", lease, err)
		}
		awaitEphemerals(t, c, path, 1)
		mustHold(t, c, held)
		released := make(chan error, 1)
		go func() { released <- held.Release(t.Context()) }() // whoever has it may
		if err := receive(t, released, "the release"); err != nil {
			t.Error(err)
		}
		if err := held.Release(t.Context()); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("second release: %v, want ErrReleased", err)
		}
	})
}

func TestOwnerlessData(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/data", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		c := w.Client(t)
		l := kind.lock(t, c, path)
		if found, err := l.Participants(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("participants of a lock that was never used: %v, %v; want none", found, err)
		}
		lease, err := kind.lock(t, c, path, lock.WithData([]byte("own"))).
			Lock(lock.ContextWithOwner(t.Context(), lock.NewOwner("job 3")))
		if err != nil {
			t.Fatal(err)
		}
		found, err := l.Participants(t.Context())
		if err != nil || len(found) == 0 {
			t.Fatalf("participants %v, %v; want the holder", found, err)
		}
		h := found[0]
		if !h.Holder || h.Path != lease.Node() || h.Session != c.Session().ID || string(h.Data) != "own" {
			t.Errorf("holder %+v: want it at %s, of session %#x, with the data own", h, lease.Node(), c.Session().ID)
		}
		if h.Metadata == nil || h.Metadata.Owner != "job 3" {
			t.Errorf("metadata %+v, want it to name the owner of the context", h.Metadata)
		}
		mustRelease(t, lease)
		lease = mustLock(t, kind.lock(t, c, path, lock.WithData([]byte("own")), lock.WithoutMetadata()))
		if data, _, err := c.Get(t.Context(), lease.Node()); err != nil || string(data) != "own" {
			t.Errorf("bare data %q (%v), want own", data, err)
		}
		mustRelease(t, lease)
	})
}

func TestOwnerlessConstructorsRefuseBadArguments(t *testing.T) {
	t.Parallel()
	for name, construct := range map[string]func() error{
		"unfair mutex":    func() error { _, err := lock.NewUnfairMutex(nil, "x//", nil); return err },
		"semaphore mutex": func() error { _, err := lock.NewSemaphoreMutex(nil, "x//", nil); return err },
	} {
		err := construct()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range []string{"new " + name, "client", `"x//"`, "option 0"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not name %s", name, err, want)
			}
		}
	}
	c, err := framework.NewClient("127.0.0.1:1") // nobody is asked
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = lock.NewUnfairMutex(c, "/x", lock.WithRevocation(func(*lock.Lease) {}), lock.WithQueuePosition(func(int) {}))
	if err == nil || !strings.Contains(err.Error(), "revocation") || !strings.Contains(err.Error(), "queue position") {
		t.Errorf("an exclusive lock with what needs a queue: %v, want an error that names both options", err)
	}
}
