package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/worlds"
	"github.com/docent-go/docent/testing/zktest"
)

// TestBoundedCalls stops the server under calls of every kind.
func TestBoundedCalls(t *testing.T) {
	t.Parallel()
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		server := w.Members()[0]
		c := server.Client(t)
		held := mustLock(t, newMutex(t, c, "/bounded/held"))
		server.Freeze(t)
		free := newMutex(t, c, "/bounded/free")
		calls := map[string]func(context.Context) error{
			"Lock":         func(ctx context.Context) error { _, err := free.Lock(ctx); return err },
			"TryLock":      func(ctx context.Context) error { _, err := free.TryLock(ctx); return err },
			"Participants": func(ctx context.Context) error { _, err := free.Participants(ctx); return err },
			"Release":      held.Release,
		}
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			start := time.Now()
			err := call(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want an error that matches DeadlineExceeded", name, err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s took %v with a context of 200ms", name, took)
			}
		}
		server.Thaw(t)
		awaitContenders(t, c, "/bounded/held", 0)
		awaitContenders(t, c, "/bounded/free", 0)
	}, worlds.Breakable())
}

func TestLockEndsWhenItsClientIsClosed(t *testing.T) {
	t.Parallel()
	const path = "/closed"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		holder := w.Client(t)
		held := mustLock(t, newMutex(t, holder, path))
		c := w.Client(t)
		m := newMutex(t, c, path)
		own := mustLock(t, newMutex(t, c, path+"-own"))
		done := lockLater(t.Context(), m)
		awaitContenders(t, holder, path, 2)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if got := receive(t, done, "the end of the wait"); !errors.Is(got.err, framework.ErrClosed) {
			t.Errorf("waiting Lock: %v, %v; want ErrClosed", got.lease, got.err)
		}
		receive(t, own.Lost(), "the loss of the client's lease")
		if err := own.Err(); !errors.Is(err, framework.ErrClosed) || !errors.Is(err, lock.ErrLost) {
			t.Errorf("lease of the closed client: %v, want ErrLost and ErrClosed", err)
		}
		if _, err := m.Lock(t.Context()); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("Lock on a closed client: %v, want ErrClosed", err)
		}
		awaitContenders(t, holder, path, 1)
		awaitContenders(t, holder, path+"-own", 0)
		mustRelease(t, held)
	})
}

// TestForeignChildren has nodes in the lock's directory that are no contenders.
func TestForeignChildren(t *testing.T) {
	t.Parallel()
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		path := anyPath("/foreign")
		c := w.Client(t)
		for _, name := range []string{"0", "content", "_c_x", "lock-", "lock-abc", "lock-12", "x-0000000000", "_c_short-lock-00000"} {
			if _, err := c.Create(t.Context(), path+"/"+name, nil, framework.WithParents()); err != nil {
				t.Fatal(err)
			}
		}
		m := newMutex(t, c, path)
		lease := mustLock(t, m)
		found, err := m.Participants(t.Context())
		if err != nil || len(found) != 1 {
			t.Errorf("participants %v, %v; want the holder alone", found, err)
		}
		mustRelease(t, lease)
	})
}

// TestOtherLibrariesContend has nodes by the names of other libraries in front:
// of Curator with a name of its own, and of go-zookeeper.
func TestOtherLibrariesContend(t *testing.T) {
	t.Parallel()
	const path = "/others"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c := w.Client(t)
		for i, prefix := range []string{"lock-", "_c_0123456789abcdef0123456789abcdef-lock-"} {
			path := fmt.Sprint(path, i)
			node, err := c.Create(t.Context(), path+"/"+prefix, nil, framework.Ephemeral(), framework.Sequential(), framework.WithParents())
			if err != nil {
				t.Fatal(err)
			}
			m := newMutex(t, c, path)
			if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("TryLock behind %s: %v, want ErrHeld", node, err)
			}
			done := lockLater(t.Context(), m)
			awaitContenders(t, c, path, 2)
			if err := c.Delete(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			got := receive(t, done, "the lock")
			if got.err != nil {
				t.Fatal(got.err)
			}
			mustRelease(t, got.lease)
		}
	})
}

// TestOperatorDeletesAWaiter takes a waiter's place away (etcd#11456: the lowest
// that remains is not the one that waits).
func TestOperatorDeletesAWaiter(t *testing.T) {
	t.Parallel()
	const path = "/operator/waiter"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		holder := w.Client(t)
		m := newMutex(t, holder, path)
		held := mustLock(t, m)
		done := lockLater(t.Context(), newMutex(t, w.Client(t), path))
		awaitContenders(t, holder, path, 2)
		found, err := m.Participants(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiter := found[1]
		if err := holder.Delete(t.Context(), waiter.Path); err != nil {
			t.Fatal(err)
		}
		zktest.Eventually(t, generous, "the waiter queues again", func() bool {
			found, err := m.Participants(t.Context())
			return err == nil && len(found) == 2 && found[1].Sequence > waiter.Sequence
		})
		select {
		case got := <-done:
			t.Fatalf("granted without a place: %v, %v", got.lease, got.err)
		default:
		}
		mustRelease(t, held)
		got := receive(t, done, "the lock")
		if got.err != nil {
			t.Fatal(got.err)
		}
		mustRelease(t, got.lease)
	})
}

func TestOperatorDeletesTheHolder(t *testing.T) {
	t.Parallel()
	const path = "/operator/holder"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		operator := w.Client(t)
		m := newMutex(t, w.Client(t), path)
		for _, waited := range []bool{false, true} {
			var lease *lock.Lease
			if waited {
				held := mustLock(t, newMutex(t, operator, path))
				done := lockLater(t.Context(), m)
				awaitContenders(t, operator, path, 2)
				mustRelease(t, held)
				lease = receive(t, done, "the lock").lease
			} else {
				lease = mustLock(t, m)
			}
			if err := operator.Delete(t.Context(), lease.Node()); err != nil {
				t.Fatal(err)
			}
			receive(t, lease.Lost(), "the loss")
			if err := lease.Err(); !errors.Is(err, lock.ErrNodeDeleted) || !errors.Is(err, lock.ErrLost) {
				t.Errorf("lease (waited %v): %v, want ErrLost and ErrNodeDeleted", waited, err)
			}
			if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrNodeDeleted) {
				t.Errorf("release (waited %v): %v, want ErrNodeDeleted", waited, err)
			}
		}
		// Before the loss was noticed, Release tells of it.
		lease := mustLock(t, m)
		if err := operator.Delete(t.Context(), lease.Node()); err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("release at once: %v, want ErrNodeDeleted", err)
		}
	})
}

// TestMonotonicFence has the directory removed between holders, so that its
// counter starts again.
func TestMonotonicFence(t *testing.T) {
	t.Parallel()
	const path = "/fence/mutex"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c := w.Client(t)
		m := newMutex(t, c, path)
		var last int64
		for range 3 {
			lease := mustLock(t, m)
			fence := lease.Fence()
			if fence <= last {
				t.Errorf("fence %d after %d: must grow", fence, last)
			}
			last = fence
			mustRelease(t, lease)
			zktest.Eventually(t, generous, "the empty directory is reaped", func() bool {
				_, ok, err := c.Exists(t.Context(), path)
				return err == nil && !ok
			})
		}
	})
}

// TestAcquireThatRacesWithReaping has somebody remove the empty directory a
// hundred times a second.
func TestAcquireThatRacesWithReaping(t *testing.T) {
	t.Parallel()
	const path = "/reaped/mutex"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		operator := w.Client(t)
		ctx, cancel := context.WithCancel(t.Context())
		reaped, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				if operator.Delete(ctx, path) == nil {
					reaped++
				}
				<-tick.C
			}
		}()
		c, _ := onWay(t, w) // on which time passes, also in virtual time
		m := newMutex(t, c, path)
		for range 200 {
			mustRelease(t, mustLock(t, m))
		}
		cancel()
		<-ended
		if reaped == 0 {
			t.Error("the directory was never removed: nothing was tested")
		}
	})
}

func TestOrder(t *testing.T) {
	t.Parallel()
	const path, waiters = "/order", 12
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		holder := w.Client(t)
		held := mustLock(t, newMutex(t, holder, path))
		clients := []*framework.Client{w.Client(t), w.Client(t), holder}
		grants := make(chan int, waiters)
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range waiters {
			m := newMutex(t, clients[i%len(clients)], path)
			wg.Go(func() {
				lease, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				grants <- i
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			awaitContenders(t, holder, path, i+2)
		}
		mustRelease(t, held)
		for want := range waiters {
			if got := receive(t, grants, "the next grant"); got != want {
				t.Fatalf("grant %d went to waiter %d", want, got)
			}
		}
	})
}
