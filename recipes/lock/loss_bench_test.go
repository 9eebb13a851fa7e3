package lock_test

import (
	"context"
	"fmt"
	"net"
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
// how long before the successor's grant.
func BenchmarkLossOfManyLeases(b *testing.B) {
	for _, leases := range []int{1, 100, 10_000, 30_000, 100_000} {
		b.Run(fmt.Sprint(leases), func(b *testing.B) {
			var late, ahead time.Duration
			for b.Loop() {
				l, a := loseAll(b, leases)
				late, ahead = max(late, l), ahead+a
			}
			b.ReportMetric(float64(late.Microseconds())/1000, "ms-late")
			b.ReportMetric(float64(ahead.Milliseconds())/float64(b.N), "ms-ahead")
		})
	}
}

// loseAll returns how long after the deadline the last of n leases is lost. ahead is how long after
// that another client is granted the first lock.
func loseAll(b *testing.B, n int) (late, ahead time.Duration) {
	b.Helper()
	server := must.Get(zkserver.Start())(b)
	defer func() { must.OK(b, server.Close()) }()
	proxy := zkproxy.RunPipe(b, func(ctx context.Context) (net.Conn, error) { return server.Dial(ctx, "tcp", server.Addr()) })
	timeout := framework.WithSessionTimeout(10 * time.Second)
	c := newClient(b, server.Addr(), framework.WithDialer(proxy.Dial), timeout)
	held := make([]*lock.Lease, n)
	for i := range held {
		held[i] = mustLock(b, newMutex(b, c, fmt.Sprintf("/bench/loss/%d/%d", i/1000, i)))
	}
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
	proxy.Blackhole(zkproxy.Both)
	for _, l := range held {
		<-l.Lost()
	}
	told := time.Now()
	deadline := held[0].Deadline()
	at := <-granted
	if at.Before(told) {
		b.Errorf("the successor was granted %v before all were told", told.Sub(at))
	}
	return told.Sub(deadline), at.Sub(told)
}
