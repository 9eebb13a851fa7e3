package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/worlds"
	"github.com/docent-go/docent/testing/zktest"
)

// TestNoGhostAfterCancelAtAnyRequest withholds each request and each reply of
// an acquire in turn, ends ctx at that moment, and lets go.
func TestNoGhostAfterCancelAtAnyRequest(t *testing.T) {
	t.Parallel()
	for _, contended := range []bool{false, true} {
		for _, action := range []fault.Action{fault.HoldRequest, fault.HoldReply, fault.DropReply, fault.CutBefore} {
			t.Run(fmt.Sprintf("contended=%v/%v", contended, action), func(t *testing.T) {
				t.Parallel()
				worlds.Each(t, func(t *testing.T, w *worlds.World) {
					observer := w.Client(t)
					for n := range 5 {
						path := anyPath(fmt.Sprintf("/ghost/%v-%d-%d", contended, action, n))
						endContextAt(t, w, observer, path, fault.Rule{Action: action, Skip: n}, contended)
					}
				})
			})
		}
	}
}

// endContextAt ends the context of an acquire once it has met the fault, or can't meet it any more.
func endContextAt(t *testing.T, w *worlds.World, observer *framework.Client, path string, rule fault.Rule, contended bool) {
	t.Helper()
	others, requests := 0, 2 // that certainly meet the fault
	if contended {
		held := mustLock(t, newMutex(t, observer, path))
		defer mustRelease(t, held)
		others, requests = 1, 3
	}
	certain := rule.Skip < requests
	client, way := onWay(t, w)
	rule.Path = path + "/**"
	stuck := way.Rules().Add(rule)
	defer stuck.Release()
	rule.Op, rule.Path = fault.GetChildren, path
	also := way.Rules().Add(rule)
	defer also.Release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := lockLater(ctx, newMutex(t, client, path))
	var got result
	zktest.Eventually(t, generous, "the fault, or the lock, or a place in the queue", func() bool {
		select {
		case got = <-done:
			return true
		default: // a waiter has read two znodes, and sends no more
			return stuck.Hits()+also.Hits() > 0 || !certain && way.Count(fault.GetData) == 2
		}
	})
	if certain && stuck.Hits()+also.Hits() == 0 {
		t.Errorf("%v of request %d: the acquire did not meet it", rule.Action, rule.Skip)
	}
	cancel()
	if got.lease == nil && got.err == nil {
		got = receive(t, done, "Lock's return after its context ended")
	}
	switch {
	case got.err == nil:
		mustRelease(t, got.lease)
	case !errors.Is(got.err, context.Canceled):
		t.Errorf("%v: error %v, want one that matches context.Canceled", rule, got.err)
	}
	stuck.Remove()
	also.Remove()
	stuck.Release()
	also.Release()
	awaitContenders(t, observer, path, others)
}

func TestNoGhostAfterTimeoutInTheQueue(t *testing.T) {
	t.Parallel()
	const path = "/ghost/timeout"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c := w.Client(t)
		held := mustLock(t, newMutex(t, c, path))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		lease, err := newMutex(t, w.Client(t), path).Lock(ctx)
		if lease != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Lock: %v, %v; want no lease and an error that matches DeadlineExceeded", lease, err)
		}
		awaitContenders(t, c, path, 1)
		mustRelease(t, held)
		mustRelease(t, mustLock(t, newMutex(t, w.Client(t), path)))
	})
}

func TestNoGhostAfterReleaseWithADeadContext(t *testing.T) {
	t.Parallel()
	const path = "/ghost/dead-context"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c := w.Client(t)
		lease := mustLock(t, newMutex(t, c, path))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lease.Release(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("release: %v, want an error that matches context.Canceled", err)
		}
		if err := lease.Err(); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("lease after its release: %v, want ErrReleased", err)
		}
		awaitContenders(t, c, path, 0)
	})
}

func TestNoGhostWhenTheReplyToTheDeleteIsLost(t *testing.T) {
	t.Parallel()
	const path = "/ghost/lost-delete"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		c, way := onWay(t, w)
		for _, action := range []fault.Action{fault.CutBefore, fault.DropReply} {
			lease := mustLock(t, newMutex(t, c, path))
			rule := way.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: action})
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("release with %v of the delete: %v", action, err)
			}
			if rule.Hits() != 1 {
				t.Fatalf("%v of the delete: %d hits, want 1", action, rule.Hits())
			}
			awaitContenders(t, w.Client(t), path, 0)
		}
	})
}

func TestNoGhostWhenTryLockIsRefused(t *testing.T) {
	t.Parallel()
	const path = "/ghost/try"
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		held := mustLock(t, newMutex(t, w.Client(t), path))
		c, way := onWay(t, w)
		m := newMutex(t, c, path)
		way.ResetRequests()
		for range 100 {
			if lease, err := m.TryLock(t.Context()); lease != nil || !errors.Is(err, lock.ErrHeld) {
				t.Fatalf("TryLock: %v, %v; want no lease and ErrHeld", lease, err)
			}
		}
		if n := len(contenders(t, c, path)); n != 1 {
			t.Errorf("%d contenders after refused attempts, want the holder alone", n)
		}
		if n := way.Count(fault.Create, fault.Delete); n != 0 {
			t.Errorf("%d writes for attempts that a look could refuse, want 0", n)
		}
		mustRelease(t, held)
		lease, err := m.TryLock(t.Context())
		if err != nil {
			t.Fatalf("TryLock of a free mutex: %v", err)
		}
		mustRelease(t, lease)
	})
}
