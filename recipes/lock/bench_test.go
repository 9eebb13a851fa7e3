package lock_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

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
