package main_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// A fleet is many clients, each of which holds a lock of its own.

// fleetAway is for how long no server serves in a failover, as in an election.
const fleetAway = 3 * time.Second

// fleetRests is for how many session timeouts the fleet is looked at while nothing happens.
const fleetRests = 3

// TestFleet measures fleets in virtual time: the requests of clients that hold a lock, at rest and from an
// outage of three seconds until all leases are proven again. The server takes no time, so the figures are
// of the clients' pauses alone. They are those of docs/sizing.md, with FLEET="100 300 1000". FLEET=10000 and
// -run='TestFleet/.*30s' take seven minutes.
func TestFleet(t *testing.T) {
	t.Parallel()
	for _, n := range fleetSizes(t) {
		for _, timeout := range []time.Duration{10 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprintf("%d clients, T %v", n, timeout), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var commits atomic.Int64
					srv := zkserver.Run(t, zkserver.WithObserver(func(zkserver.Transaction) { commits.Add(1) }))
					f := newFleet(t, n, timeout, srv.Addr(), srv.Dial)
					f.traffic.commits = &commits
					r := f.measure(t, func() { srv.Refuse(); srv.Cut() }, srv.Accept)
					t.Log(r)
					if perTimeout := r.rest.mean * timeout.Seconds() / float64(n); perTimeout > 12 {
						t.Errorf("%.1f requests per client and session timeout at rest, want 4 heartbeats, 4 reads and 3 pings", perTimeout)
					}
					if r.proven > 4*time.Second { // two pauses of 2 s
						t.Errorf("the last lease is proven %v after the server's return", r.proven)
					}
				})
			})
		}
	}
}

// BenchmarkFleet measures fleets on an ensemble of three whose leader is killed.
func BenchmarkFleet(b *testing.B) {
	for _, n := range fleetSizes(b) {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			e := zktest.RunEnsemble(b, 3, zktest.WithFsync())
			for range b.N {
				f := newFleet(b, n, 10*time.Second, e.Addr(), new(net.Dialer).DialContext)
				leader := must.Get(e.Leader(b.Context()))(b)
				r := f.measure(b, func() { must.OK(b, leader.Kill()) }, nil)
				f.close(b)
				must.OK(b, leader.Restart(b.Context()))
				b.Log(r)
				b.ReportMetric(r.rest.mean, "requests/s")
				b.ReportMetric(r.proven.Seconds(), "s-proven")
			}
		})
	}
}

// fleetSizes returns the sizes to measure.
func fleetSizes(t testing.TB) (sizes []int) {
	t.Helper()
	for _, size := range strings.Fields(os.Getenv("FLEET")) {
		sizes = append(sizes, must.Get(strconv.Atoi(size))(t))
	}
	if sizes == nil {
		return []int{20}
	}
	return sizes
}

type fleet struct {
	timeout time.Duration
	traffic traffic
	clients []*framework.Client
	leases  []*lock.Lease
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// newFleet starts n clients that lock.
func newFleet(t testing.TB, n int, timeout time.Duration, addr string, dial dialFunc) *fleet {
	t.Helper()
	f := &fleet{timeout: timeout, traffic: traffic{began: time.Now()}, clients: make([]*framework.Client, n), leases: make([]*lock.Lease, n)}
	t.Cleanup(func() { f.close(t) })
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			c, err := framework.NewClient(addr, framework.WithSessionTimeout(timeout), framework.WithDialer(f.traffic.dialer(dial)))
			if err != nil {
				t.Error(err)
				return
			}
			f.clients[i] = c
			m, err := lock.NewMutex(c, fmt.Sprint("/fleet/", i))
			if err != nil {
				t.Error(err)
				return
			}
			if f.leases[i], err = m.Lock(t.Context()); err != nil {
				t.Error(err)
			}
		})
		<-time.After(timeout / 4 / time.Duration(n)) // else all heartbeats would go out at one instant
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return f
}

func (f *fleet) close(t testing.TB) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range f.clients {
		if c != nil {
			wg.Go(func() { _ = c.Close() }) // it owes nothing
		}
	}
	wg.Wait()
	f.clients = nil
}

// A fleetResult is what a failover costs.
type fleetResult struct {
	clients     int
	rest, after load          // before and after the failover
	back        load          // from the end of the outage until all leases are proven
	dials       int           // attempts to connect, from the beginning of the outage
	half        time.Duration // from the end of the outage until half of the leases are proven again
	proven      time.Duration // until all are
	lost        int
	why         error // the first loss; nil if none is lost
}

func (r fleetResult) String() string {
	return fmt.Sprintf("%d clients\n  at rest: %v\n  failover: %d attempts to connect; half of the leases are proven after %v, all after %v, %d are lost (%v)\n  until then: %v\n  afterwards: %v",
		r.clients, r.rest, r.dials, r.half, r.proven, r.lost, r.why, r.back, r.after)
}

// measure looks at the fleet at rest, through a failover and at rest again. Without accept, the servers come
// back by themselves, and the failover counts from its beginning.
func (f *fleet) measure(t testing.TB, fail, accept func()) (r fleetResult) {
	t.Helper()
	r.clients = len(f.clients)
	rest := time.Duration(fleetRests) * f.timeout
	<-time.After(f.timeout) // what the locks have written counts as a heartbeat
	f.traffic.reset()
	<-time.After(rest)
	r.rest = f.traffic.load()
	for _, l := range f.leases {
		if err := l.Err(); err != nil {
			t.Fatalf("a lease is lost before the outage: %v", err)
		}
	}
	before := make([]time.Time, len(f.leases))
	fail()
	for i, l := range f.leases {
		before[i] = l.Deadline()
	}
	f.traffic.reset()
	if accept != nil {
		<-time.After(fleetAway)
		accept()
	}
	r.dials = f.traffic.dialed()
	f.traffic.reset()
	began := time.Now()
	for {
		<-time.After(10 * time.Millisecond)
		proven := 0
		for i, l := range f.leases {
			if l.Err() != nil || l.Deadline().After(before[i]) {
				proven++
			}
		}
		if r.half == 0 && proven >= len(f.leases)/2 {
			r.half = time.Since(began)
		}
		if proven == len(f.leases) {
			break
		}
	}
	r.proven, r.back = time.Since(began), f.traffic.load()
	r.dials += f.traffic.dialed()
	f.traffic.reset()
	<-time.After(rest)
	r.after = f.traffic.load()
	for _, l := range f.leases {
		if err := l.Err(); err != nil {
			r.lost, r.why = r.lost+1, cmp.Or(r.why, err)
		}
	}
	return r
}

// A traffic counts what the clients of a fleet send.
type traffic struct {
	mu       sync.Mutex // guards following
	began    time.Time
	requests []int // in each interval of trafficInterval
	dials    int
	commits  *atomic.Int64 // transactions that the leader has committed; nil if they are not counted
	earlier  int64         // of those, before began
}

const trafficInterval = 100 * time.Millisecond

// A load is the traffic of a span of time.
type load struct {
	requests   int
	mean, peak float64 // requests per second; the peak is that of an interval
	commits    float64 // transactions per second at the leader
}

func (l load) String() string {
	return fmt.Sprintf("%d requests, %.0f/s, %.0f/s in the busiest %v, %.0f transactions/s at the leader",
		l.requests, l.mean, l.peak, trafficInterval, l.commits)
}

func (c *traffic) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.requests, c.dials = time.Now(), nil, 0
	if c.commits != nil {
		c.earlier = c.commits.Load()
	}
}

func (c *traffic) load() load {
	var l load
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.requests {
		l.requests += n
		l.peak = max(l.peak, float64(n)/trafficInterval.Seconds())
	}
	l.mean = float64(l.requests) / time.Since(c.began).Seconds()
	if c.commits != nil {
		l.commits = float64(c.commits.Load()-c.earlier) / time.Since(c.began).Seconds()
	}
	return l
}

func (c *traffic) dialed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dials
}

func (c *traffic) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.mu.Lock()
		c.dials++
		c.mu.Unlock()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{conn, c}, nil
	}
}

// A countedConn is a connection whose frames are counted. The client writes each request by one call.
type countedConn struct {
	net.Conn
	traffic *traffic
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.traffic.mu.Lock()
	i := int(time.Since(c.traffic.began) / trafficInterval)
	for len(c.traffic.requests) <= i {
		c.traffic.requests = append(c.traffic.requests, 0)
	}
	c.traffic.requests[i]++
	c.traffic.mu.Unlock()
	return c.Conn.Write(p)
}
