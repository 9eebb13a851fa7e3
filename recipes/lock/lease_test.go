package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/worlds"
)

func TestDo(t *testing.T) {
	t.Parallel()
	const path = "/do/mutex"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c := w.Client(t)
		m := newMutex(t, c, path)
		wrong := errors.New("wrong")
		err := lock.Do(t.Context(), m, func(ctx context.Context, _ *lock.Lease) error {
			if n := m.Held(ctx); n != 1 {
				t.Errorf("held %d times within Do, want 1", n)
			}
			return wrong
		})
		if !errors.Is(err, wrong) {
			t.Errorf("Do: %v, want fn's error", err)
		}
		awaitContenders(t, c, path, 0)

		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of fn did not come through")
				}
			}()
			_ = lock.Do(t.Context(), m, func(context.Context, *lock.Lease) error { panic("fn") })
		}()
		awaitContenders(t, c, path, 0)

		ctx, cancel := context.WithCancel(t.Context())
		err = lock.Do(ctx, m, func(context.Context, *lock.Lease) error { cancel(); return nil })
		if err != nil {
			t.Errorf("Do whose context ended in fn: %v, want nil: the release has a context of its own", err)
		}
		if names := contenders(t, c, path); len(names) != 0 {
			t.Errorf("contenders %v after Do, want none", names)
		}
		called := false
		if err := lock.Do(ctx, m, func(context.Context, *lock.Lease) error { called = true; return nil }); !errors.Is(err, context.Canceled) || called {
			t.Errorf("Do with a dead context: %v, called %v; want Canceled, and fn not called", err, called)
		}
	})
}

func TestDoTellsFnOfALoss(t *testing.T) {
	t.Parallel()
	const path = "/do/lost"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		operator := w.Client(t)
		m := newMutex(t, w.Client(t), path)
		err := lock.Do(t.Context(), m, func(ctx context.Context, _ *lock.Lease) error {
			found, err := m.Participants(ctx)
			if err != nil {
				return err
			}
			if err := operator.Delete(ctx, found[0].Path); err != nil {
				return err
			}
			receive(t, ctx.Done(), "the end of fn's context")
			if cause := context.Cause(ctx); !errors.Is(cause, lock.ErrLost) {
				t.Errorf("cause %v, want ErrLost", cause)
			}
			return nil
		})
		if !errors.Is(err, lock.ErrLost) {
			t.Errorf("Do: %v, want ErrLost though fn returned nil", err)
		}
	})
}

func TestLeaseContextEndsWithTheRelease(t *testing.T) {
	t.Parallel()
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		m := newMutex(t, w.Client(t), "/lease/context")
		lease := mustLock(t, m)
		held, cancel := lease.Context(t.Context())
		defer cancel()
		other, cancelOther := lease.Context(t.Context())
		cancelOther()
		if err := other.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled context: %v", err)
		}
		if err := held.Err(); err != nil {
			t.Errorf("context of a lease that stands: %v", err)
		}
		mustRelease(t, lease)
		if cause := context.Cause(held); !errors.Is(cause, lock.ErrReleased) {
			t.Errorf("cause after the release: %v, want ErrReleased", cause)
		}
		select {
		case <-lease.Lost():
			t.Error("Lost was closed by a release")
		default:
		}
		late, cancelLate := lease.Context(t.Context())
		defer cancelLate()
		if cause := context.Cause(late); !errors.Is(cause, lock.ErrReleased) {
			t.Errorf("context of a released lease: %v, want ErrReleased", cause)
		}
	})
}

// TestGuard writes under a lock's guard, before and after the lock is lost.
func TestGuard(t *testing.T) {
	t.Parallel()
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c := w.Client(t)
		createDirs(t, c, "/lease/guarded")
		lease := mustLock(t, newMutex(t, c, "/lease/guard"))
		if _, err := c.Txn(t.Context(), lease.Guard(), framework.OpSet("/lease/guarded", []byte("1"), framework.AnyVersion)); err != nil {
			t.Errorf("guarded write of the holder: %v", err)
		}
		mustRelease(t, lease)
		_, err := c.Txn(t.Context(), lease.Guard(), framework.OpSet("/lease/guarded", []byte("2"), framework.AnyVersion))
		var culprit *framework.TxnError
		if !errors.As(err, &culprit) || culprit.Index != 0 || !errors.Is(err, framework.ErrNoNode) {
			t.Errorf("guarded write after the release: %v, want ErrNoNode of operation 0", err)
		}
		if data, _, err := c.Get(t.Context(), "/lease/guarded"); err != nil || string(data) != "1" {
			t.Errorf("data %q (%v), want 1", data, err)
		}
	})
}

func TestParticipants(t *testing.T) {
	t.Parallel()
	const path = "/participants"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c := w.Client(t)
		holder := newMutex(t, c, path, lock.WithData([]byte("first")))
		if found, err := holder.Participants(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("participants of a lock that was never used: %v, %v; want none", found, err)
		}
		owned := lock.ContextWithOwner(t.Context(), lock.NewOwner("request 17"))
		before := time.Now().Add(-time.Second)
		lease, err := holder.Lock(owned)
		if err != nil {
			t.Fatal(err)
		}
		waiting := w.Client(t)
		bare := newMutex(t, waiting, path, lock.WithoutMetadata())
		ctx, cancel := context.WithCancel(t.Context())
		done := lockLater(ctx, bare)
		awaitContenders(t, c, path, 2)
		found, err := holder.Participants(t.Context())
		if err != nil || len(found) != 2 {
			t.Fatalf("participants %v, %v; want two", found, err)
		}
		h, next := found[0], found[1]
		if !h.Holder || next.Holder || h.Path != lease.Node() || h.Sequence >= next.Sequence {
			t.Errorf("participants %+v: want the holder first", found)
		}
		if h.Session != c.Session().ID || next.Session != waiting.Session().ID || h.Kind != "lock-" {
			t.Errorf("sessions %#x and %#x, kind %q; want %#x and %#x, lock-", h.Session, next.Session, h.Kind, c.Session().ID, waiting.Session().ID)
		}
		if m := h.Metadata; m == nil || m.Owner != "request 17" || m.PID == 0 || m.Since.Before(before) || string(h.Data) != "first" {
			t.Errorf("holder's metadata %+v, data %q; want owner, process, time and first", m, h.Data)
		}
		if next.Metadata != nil || strings.Contains(string(next.Data), "{") {
			t.Errorf("waiter's metadata %+v, data %q; want Curator's bytes", next.Metadata, next.Data)
		}
		cancel()
		receive(t, done, "the waiter")
		mustRelease(t, lease)
	})
}

func TestNewMutexTellsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	c, err := framework.NewClient("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, path := range []string{"", "relative", "/", "/a//b", "/a/", "/a/./b", "/a/../b", "/a\x00b", "/a\x1fb"} {
		if m, err := lock.NewMutex(c, path); m != nil || err == nil {
			t.Errorf("path %q: %v, %v; want an error", path, m, err)
		}
	}
	_, err = lock.NewMutex(nil, "/a//b", nil, lock.WithLossPolicy(7), lock.WithACL())
	want := []string{"client: must not be nil", `"/a//b": must not contain //`, "option 0: must not be nil", "loss policy LossPolicy(7)", "ACL: must have at least one entry"}
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v\nmust contain %q", err, text)
		}
	}
}
