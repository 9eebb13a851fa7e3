package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// BenchmarkReentry measures one more Lock and Release of a lock that the caller holds, compared
// with a mutex of the process.
func BenchmarkReentry(b *testing.B) {
	m := newMutex(b, newClient(b, zktest.Shared(b).Addr()), "/bench/reentry")
	owners := map[string]context.Context{
		"goroutine": b.Context(),
		"owner":     lock.ContextWithOwner(b.Context(), lock.NewOwner("bench")),
	}
	for name, ctx := range owners {
		b.Run(name, func(b *testing.B) {
			lease := must.Get(m.Lock(ctx))(b)
			b.ReportAllocs()
			var fault error
			for b.Loop() { // without must: its Helper takes longer than what is measured
				again, err := m.Lock(ctx)
				if err == nil {
					err = again.Release(ctx)
				}
				fault = errors.Join(fault, err)
			}
			must.OK(b, fault)
			mustRelease(b, lease)
		})
	}
	b.Run("sync.Mutex", func(b *testing.B) {
		var mu sync.Mutex
		for b.Loop() {
			mu.Lock()
			mu.Unlock() //nolint:staticcheck // the bare cost is what is measured
		}
	})
}

// BenchmarkUncontended measures Lock and Release of a free mutex, compared with the bare create
// and delete of a znode that it can't do without.
func BenchmarkUncontended(b *testing.B) {
	c := newClient(b, zktest.Shared(b).Addr())
	ctx := b.Context()
	b.Run("mutex", func(b *testing.B) {
		m := newMutex(b, c, "/bench/uncontended")
		for b.Loop() {
			lease := must.Get(m.Lock(ctx))(b)
			must.OK(b, lease.Release(ctx))
		}
	})
	b.Run("create+delete", func(b *testing.B) {
		for b.Loop() {
			path := must.Get(c.Create(ctx, "/bench-bare", nil))(b)
			must.OK(b, c.Delete(ctx, path))
		}
	})
}

// BenchmarkLossOfManyLeases cuts a client off that holds many locks, and another client waits for the
// first of them. It measures how long after the deadline all holders know of the loss, and
// how long before the successor's grant. Each lease has a context.
func BenchmarkLossOfManyLeases(b *testing.B) {
	for _, leases := range []int{1, 100, 10_000, 30_000, 100_000} {
		b.Run(fmt.Sprint(leases), func(b *testing.B) {
			worst := loss{late: -time.Hour} // it may be ahead of the deadline
			for b.Loop() {
				l := loseAll(b, leases)
				worst.late = max(worst.late, l.late)
				worst.ahead += l.ahead
			}
			b.ReportMetric(float64(worst.late.Microseconds())/1000, "ms-late")
			b.ReportMetric(float64(worst.ahead.Milliseconds())/float64(b.N), "ms-ahead")
		})
	}
}

// A loss is the result of one run.
type loss struct {
	late  time.Duration // from the deadline until the last lease is lost
	ahead time.Duration // from then until another client is granted the first lock
}

// loseAll loses n leases.
func loseAll(b *testing.B, n int) loss {
	b.Helper()
	server := must.Get(zkserver.Start())(b)
	defer func() { must.OK(b, server.Close()) }()
	proxy := zkproxy.RunPipe(b, func(ctx context.Context) (net.Conn, error) { return server.Dial(ctx, "tcp", server.Addr()) })
	timeout := framework.WithSessionTimeout(10 * time.Second)
	c := newClient(b, server.Addr(), framework.WithDialer(proxy.Dial), timeout)
	held := lockMany(b, c, n)
	other := newMutex(b, newClient(b, server.Addr(), framework.WithDialer(server.Dial), timeout), held[0].Path())
	granted := make(chan time.Time, 1)
	go func() {
		lease, err := other.Lock(b.Context())
		if err != nil {
			b.Error(err)
		} else if err := lease.Release(b.Context()); err != nil {
			b.Error(err)
		}
		granted <- time.Now()
	}()
	ended := make([]<-chan struct{}, n) // the leases' contexts
	for i, l := range held {
		ctx, cancel := l.Context(b.Context())
		defer cancel()
		ended[i] = ctx.Done()
	}
	proxy.Blackhole(zkproxy.Both)
	for i, l := range held {
		<-l.Lost()
		<-ended[i]
	}
	notified := time.Now()
	deadline := held[0].Deadline()
	at := <-granted
	if at.Before(notified) {
		b.Errorf("the successor was granted %v before all were told", notified.Sub(at))
	}
	return loss{notified.Sub(deadline), at.Sub(notified)}
}

// lockMany locks n mutexes, many at a time.
func lockMany(b *testing.B, c *framework.Client, n int) []*lock.Lease {
	b.Helper()
	const workers = 128
	held := make([]*lock.Lease, n)
	mutexes := make([]*lock.Mutex, n)
	for i := range mutexes {
		mutexes[i] = newMutex(b, c, fmt.Sprintf("/bench/loss/%d/%d", i/1000, i))
	}
	var wg sync.WaitGroup
	for first := range min(n, workers) {
		wg.Go(func() {
			for i := first; i < n; i += workers {
				lease, err := mutexes[i].Lock(b.Context())
				if err != nil {
					b.Error(err)
					return
				}
				held[i] = lease
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return held
}

// BenchmarkMultiOfTen measures Lock and Release of ten free mutexes together, compared with one
// mutex and with ten that are locked one after another.
func BenchmarkMultiOfTen(b *testing.B) {
	c := newClient(b, zktest.Shared(b).Addr())
	paths := numbered("/bench/multi", 10)
	keepDirectories(b, c, paths)
	mutexes := newMutexes(b, c, paths...)
	cycle := func(b *testing.B, locks ...lock.Locker) {
		for b.Loop() {
			leases := make([]*lock.Lease, len(locks))
			for i, l := range locks {
				leases[i] = mustLock(b, l)
			}
			for _, lease := range leases {
				mustRelease(b, lease)
			}
		}
	}
	b.Run("multi", func(b *testing.B) { cycle(b, newMulti(b, mutexes...)) })
	b.Run("one mutex", func(b *testing.B) { cycle(b, mutexes[0]) })
	b.Run("ten mutexes", func(b *testing.B) { cycle(b, mutexes...) })
}

// BenchmarkTelemetry measures Lock and Release of a free mutex on a server in the process, without
// telemetry and with all of it recorded.
func BenchmarkTelemetry(b *testing.B) {
	addr, dialer := serverInProcess(b)
	run := func(name string, c *framework.Client) {
		m := newMutex(b, c, "/bench/telemetry", recipes.WithName("bench"))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
				lease := must.Get(m.Lock(ctx))(b)
				must.OK(b, lease.Release(ctx))
				cancel()
			}
		})
	}
	run("nobody", newClient(b, addr, dialer))
	run("all", newService("a", func(opts ...framework.Option) *framework.Client {
		return newClient(b, addr, append(opts, dialer)...)
	}).client)
}
