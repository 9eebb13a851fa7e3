package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// TestWaitError ends waits for a held lock by their context: while the client is connected, in an outage
// that began before the wait or during it, and after one.
func TestWaitError(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for _, c := range []struct {
		name                     string
		refuseAt, acceptAt, wait time.Duration // since the wait began; 0 for never
		before                   bool          // the outage begins before the wait
		connected                bool
	}{
		{name: "connected", wait: second, connected: true},
		{name: "outage before", before: true, wait: second},
		{name: "outage during", refuseAt: second, wait: 3 * second},
		{name: "outage over", refuseAt: second, acceptAt: 2 * second, wait: 20 * second, connected: true},
	} {
		for _, k := range kindsThat(kind.exclusive) {
			t.Run(k.name+" "+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := virtualServer(t)
					mustLock(t, k.lock(t, virtualClient(t, srv), "/wait"))
					l := k.lock(t, virtualClient(t, srv), "/wait")
					outage := func() { srv.Refuse(); srv.Cut() }
					if c.before {
						outage()
						synctest.Wait()
					}
					if c.refuseAt > 0 {
						defer time.AfterFunc(c.refuseAt, outage).Stop()
					}
					if c.acceptAt > 0 {
						defer time.AfterFunc(c.acceptAt, srv.Accept).Stop()
					}
					ctx, cancel := context.WithTimeout(t.Context(), c.wait)
					defer cancel()
					_, err := l.Lock(ctx)
					srv.Accept()
					var wait *lock.WaitError
					if !errors.As(err, &wait) || !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("Lock: %v, want a WaitError of the deadline", err)
					}
					if errors.Is(err, framework.ErrNotConnected) == c.connected {
						t.Errorf("Lock: %v; connected %v", err, c.connected)
					}
					if c.before {
						return
					}
					ahead := 1
					if k.name == "unfair mutex" {
						ahead = -1 // it has no queue
					}
					if wait.Ahead != ahead {
						t.Errorf("%d ahead, want %d", wait.Ahead, ahead)
					}
					if k.name != "semaphore mutex" && (wait.BlockedBy == nil || !wait.BlockedBy.Holder || wait.BlockedBy.Metadata == nil) {
						t.Errorf("blocked by %+v, want the holder", wait.BlockedBy)
					}
				})
			})
		}
	}
}

// TestWaitErrorOfALocalTurn ends the wait for a call of the same Local, in an outage.
func TestWaitErrorOfALocalTurn(t *testing.T) {
	inLocalTest(t, 3, func(t localTest) {
		mustRelease(t, mustLock(t, t.local))
		held := mustLock(t, t.local)
		for _, connected := range []bool{true, false} {
			if !connected {
				t.srv.Refuse()
				t.srv.Cut()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := t.local.Lock(ctx)
			var wait *lock.WaitError
			if !errors.As(err, &wait) || errors.Is(err, framework.ErrNotConnected) == connected {
				t.Errorf("Lock: %v; connected %v", err, connected)
			}
		}
		t.srv.Accept()
		_ = held.Release(t.Context()) // it may have been lost
	})
}
