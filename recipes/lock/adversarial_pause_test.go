package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
)

// The pause of a retry policy is for servers that are away. One that is back is asked
// at once: by operations, by waiters, and by deletions in the background.
func TestLongPausesEndWithTheConnectionsReturn(t *testing.T) {
	t.Parallel()
	slow := framework.WithRetry(retry.Forever(10 * time.Minute))
	t.Run("a read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := virtualServer(t)
			c := virtualClient(t, srv, slow)
			srv.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.CutBefore})
			began := time.Now()
			must.Get2(c.Exists(t.Context(), "/"))(t)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v, want less than 5 s: the connection was away for a moment", took)
			}
		})
	})
	t.Run("a lock that has become free", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const path = "/attack/slow"
			srv := virtualServer(t)
			held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
			c := virtualClient(t, srv, slow)
			srv.Rules().Add(fault.Rule{Session: c.Session().ID, Op: fault.GetData, Path: path + "/*", Action: fault.CutBefore})
			done := lockLater(t.Context(), newMutex(t, c, path))
			await(time.Second)
			mustRelease(t, held)
			began := time.Now()
			got := <-done
			if got.err != nil {
				t.Fatal(got.err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("granted %v after the release, want within the session timeout of 10 s", took)
			}
			mustRelease(t, got.lease)
		})
	})
	t.Run("a ghost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const path = "/attack/slowghost"
			srv := virtualServer(t)
			c := virtualClient(t, srv, slow)
			lease := mustLock(t, newMutex(t, c, path))
			srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := lease.Release(ctx); err == nil {
				return // it has been retried within a second
			}
			srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
			await(time.Minute)
			if left := znodesBelow(srv, path); len(left) != 0 {
				t.Errorf("a minute after the release, with a server at hand: %q", left)
			}
		})
	})
}

// Lock waits for a session as long as its context and the client's policy say.
func TestLockWaitsForASessionByThePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/outage"
		srv := virtualServer(t)
		held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		_ = held
		waiting := newMutex(t, virtualClient(t, srv, framework.WithRetry(retry.Forever(time.Second))), path)
		done := lockLater(t.Context(), waiting)
		synctest.Wait()
		srv.Refuse()
		srv.Cut()
		await(time.Minute) // the sessions end
		select {
		case got := <-done:
			t.Fatalf("Lock gave up in an outage although its policy is to go on for ever: %v", got.err)
		default:
		}
		srv.Accept()
		mustRelease(t, granted(t, done, "the lock"))
	})
}

// HoldSession waits until ctx ends: so says its contract.
func TestHoldSessionWaitsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		srv.Refuse()
		srv.Cut()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := c.HoldSession(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v, want an error that matches DeadlineExceeded", time.Since(began), err)
		}
		srv.Accept()
	})
}

// AwaitConnected also reports a context that ends together with the connect timeout.
func TestAwaitConnected_reports_its_context(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			srv := virtualServer(t)
			c := virtualClient(t, srv)
			srv.Refuse()
			srv.Cut()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 2*framework.DefaultConnectTimeout)
			defer cancel()
			if err := c.AwaitConnected(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want an error that matches DeadlineExceeded", err)
			}
			srv.Accept()
		})
	}
}
