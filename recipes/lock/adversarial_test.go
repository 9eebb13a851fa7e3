package lock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// The tests of this file, and of those named like it, construct interleavings, most of
// them in virtual time: a server within the process, connected by pipes.

// virtualServer starts a server that is closed at the end of the test.
func virtualServer(t testing.TB, opts ...zkserver.Option) *zkserver.Server {
	t.Helper()
	return zkserver.Run(t, append(zkenv.DrawVersion(t), opts...)...)
}

// virtualClient returns a connected client of srv.
func virtualClient(t testing.TB, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return newClient(t, srv.Addr(), append([]framework.Option{framework.WithDialer(srv.Dial)}, opts...)...)
}

// znodesBelow returns the znodes below path, as the server has them.
func znodesBelow(srv *zkserver.Server, path string) []string {
	var found []string
	for _, p := range srv.Paths() {
		if strings.HasPrefix(p, path+"/") {
			found = append(found, p)
		}
	}
	return found
}

// await lets virtual time pass.
func await(d time.Duration) { <-time.After(d) }

// cutOffAt holds a mutex, made with the options, from a moment after the connection on. The server
// vanishes while it reads the znode for the monitor. cutOffAt returns how long after that the loss
// was reported, and how long the znode had been gone then.
func cutOffAt(t *testing.T, moment time.Duration, policy lease.LossPolicy, opts ...framework.Option) (told, late time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/watchdog"
		srv := virtualServer(t)
		srv.Rules().Add(fault.Rule{
			Op: fault.GetData, Path: path + "/*", Action: fault.DelayReply, Delay: 100 * time.Millisecond, Times: fault.Forever,
		})
		c := virtualClient(t, srv, opts...)
		await(moment)
		lease := mustLock(t, newMutex(t, c, path, recipes.WithLossPolicy(policy)))
		await(60 * time.Millisecond) // the watch is asked for after 50 ms
		srv.Refuse()
		srv.Cut()
		cut := time.Now()
		gone := make(chan time.Time, 1)
		go func() {
			for len(znodesBelow(srv, path)) > 0 {
				await(10 * time.Millisecond)
			}
			gone <- time.Now()
		}()
		<-lease.Lost()
		told = time.Since(cut)
		if at := <-gone; at.Before(cut.Add(told)) {
			late = cut.Add(told).Sub(at)
		}
		srv.Accept()
	})
	return told, late
}

// While the monitor's read of the znode is retried, it obeys the session's deadline.
func TestLossBeforeSuccession_while_the_monitor_reads(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		retries retry.Policy
		connect time.Duration
	}{
		{"the default policy", retry.BoundedExponential(50*time.Millisecond, 2*time.Second, 5), 2 * time.Second},
		{"an exponential policy", retry.Exponential(time.Second, 3), 2 * time.Second},
		{"a pause of a minute", retry.Forever(time.Minute), framework.DefaultConnectTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			number, worst := 0, time.Duration(0)
			for i := range 40 {
				_, late := cutOffAt(t, time.Duration(i)*60*time.Millisecond, lease.AtDeadline,
					framework.WithRetry(tt.retries), framework.WithConnectTimeout(tt.connect))
				if late > 20*time.Millisecond {
					number, worst = number+1, max(worst, late)
				}
			}
			if number > 0 {
				t.Errorf("in %d of 40 cases the loss was told after the znode was gone, by up to %v", number, worst)
			}
		})
	}
}

// While the monitor's read of the znode is retried, it obeys a broken connection.
func TestLossOnSuspend_while_the_monitor_reads(t *testing.T) {
	t.Parallel()
	if told, _ := cutOffAt(t, 0, lease.OnSuspend); told > 20*time.Millisecond {
		t.Errorf("the loss was told %v after the connection broke, want at once", told)
	}
}

// If a user's function panics, or ends its goroutine, in the middle of Lock, it leaves no orphan.
// Callers such as net/http continue after it.
func TestNoOrphan_when_a_callback_panics(t *testing.T) {
	t.Parallel()
	tests := map[string]func(){
		"panics":             func() { panic("by the test") },
		"ends its goroutine": runtime.Goexit,
	}
	for name, fail := range tests {
		for _, at := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const path = "/attack/panic"
					srv := virtualServer(t)
					holder := newMutex(t, virtualClient(t, srv), path)
					held := mustLock(t, holder)
					failing := newMutex(t, virtualClient(t, srv), path, recipes.WithQueuePosition(func(position int) {
						if position == at {
							fail()
						}
					}))
					var done sync.WaitGroup
					done.Go(func() {
						defer func() { _ = recover() }()
						_, _ = failing.Lock(t.Context())
					})
					synctest.Wait()
					mustRelease(t, held)
					done.Wait()
					await(time.Minute)
					if left := znodesBelow(srv, path); len(left) != 0 {
						t.Errorf("left behind: %q", left)
					}
				})
			})
		}
	}
}

// A retry observer that panics when the reply to the create was lost leaves nothing either.
func TestNoOrphan_when_a_retry_observer_panics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/observer"
		srv := virtualServer(t)
		dropped := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.DropReply, Skip: 1})
		c := virtualClient(t, srv, framework.WithRetryObserver(func(framework.Retry) { panic("by the test") }))
		func() {
			defer func() { _ = recover() }()
			if lease, err := newMutex(t, c, path).Lock(t.Context()); err == nil {
				mustRelease(t, lease)
			}
		}()
		if dropped.Hits() != 1 {
			t.Fatalf("%d replies dropped, want 1", dropped.Hits())
		}
		await(time.Minute)
		if left := znodesBelow(srv, path); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

// Goroutines of one owner that each lock once and unlock once leave nothing held.
func TestUnlocksOfOneOwnerAtOnce(t *testing.T) {
	t.Parallel()
	srv := virtualServer(t)
	m := newMutex(t, virtualClient(t, srv), "/attack/unlock")
	for i := range 300 {
		ctx := lock.ContextWithOwner(t.Context(), lock.NewOwner("party"))
		const n = 8
		for range n {
			must.Get(m.Lock(ctx))(t)
		}
		start := make(chan struct{})
		var all sync.WaitGroup
		var failed atomic.Int32
		for range n {
			all.Go(func() {
				<-start
				if err := m.Unlock(ctx); err != nil {
					failed.Add(1)
				}
			})
		}
		close(start)
		all.Wait()
		if held := m.Held(ctx); held != 0 || failed.Load() != 0 {
			t.Fatalf("round %d: %d unlocks for %d locks: %d failed, %d leases are left", i, n, n, failed.Load(), held)
		}
	}
}

// A try that takes over from another call of its owner is not refused for the node that it
// inherits.
func TestTryLock_takes_over_its_owners_attempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/attack/takeover"
		srv := virtualServer(t)
		c := virtualClient(t, srv)
		m := newMutex(t, c, path)
		owner := lock.ContextWithOwner(t.Context(), lock.NewOwner("party"))
		// The directory exists, so it is listed once before the znode is created and once behind it.
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
		slow := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.HoldReply, Skip: 1})
		first, cancel := context.WithCancel(owner)
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := m.TryLock(first); !errors.Is(err, context.Canceled) {
				t.Errorf("the first TryLock: %v, want an error that matches context.Canceled", err)
			}
		})
		<-slow.Hit() // the node exists, and the listing behind it is on its way
		all.Go(func() {
			lease, err := m.TryLock(owner)
			if err != nil {
				t.Errorf("the second TryLock: %v, want a lease: nobody else is there", err)
				return
			}
			mustRelease(t, lease)
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		slow.Release()
		all.Wait()
	})
}
