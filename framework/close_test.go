package framework_test

import (
	"context"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestCloseFromAListenerReturns(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	var c *framework.Client
	var once sync.Once
	ready := make(chan struct{})
	c = newClient(t, zktest.Shared(t).Addr(), framework.WithStateListener(func(change framework.StateChange) {
		<-ready
		if change.To == connected {
			once.Do(func() {
				_ = c.Close() // that it returns is the test
				close(done)
			})
		}
	}))
	close(ready)
	await(t, done, "Close")
}

// DOCENT_CYCLES says how many, for a longer look: 10000 take about a minute.
func TestConnectingAndClosingOverAndOverDoesNotGrow(t *testing.T) {
	server := zktest.Shared(t)
	cycles := 300
	if s := os.Getenv("DOCENT_CYCLES"); s != "" {
		cycles = 10000
	}
	cycle := func() {
		c := must.Get(framework.NewClient(server.Addr(), framework.WithMaxPacket(framework.MinPacket, framework.MinPacket)))(t)
		ctx := within(t, patience)
		must.OK(t, c.AwaitConnected(ctx))
		must.OK(t, c.Close())
	}
	for range 50 {
		cycle()
	}
	goroutines, open, size := runtime.NumGoroutine(), sockets(t), heap()
	for range cycles {
		cycle()
	}
	zktest.Eventually(t, patience, "goroutines and sockets are as before", func() bool {
		return runtime.NumGoroutine() <= goroutines && sockets(t) <= open
	})
	if growth := int64(heap()) - int64(size); growth > 1<<20 {
		t.Errorf("the heap grew by %d bytes over %d cycles", growth, cycles)
	}
	t.Logf("after %d cycles: %d goroutines (%d before), %d sockets (%d), heap %+d bytes", cycles,
		runtime.NumGoroutine(), goroutines, sockets(t), open, int64(heap())-int64(size))
}

// sockets returns how many sockets this process has open.
func sockets(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc/self/fd: ", err)
	}
	n := 0
	for _, entry := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}

// What waits to be written, or is in a frozen server, is not ahead of the close of the session: it is closed
// within the second by the connection in use, or by another.
func TestCloseGoesFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		link   *link
		writes int  // of 1000 KiB, whose contexts end before Close
		calls  bool // the contexts of the writes end with Close
		freeze bool // its server, of three
		hold   bool
	}{
		"nothing waits":                       {&link{up: mega}, 0, false, false, false},
		"one write is under way":              {&link{up: mega}, 1, false, false, false},
		"three wait":                          {&link{up: mega}, 3, false, false, false},
		"twenty wait":                         {&link{up: mega}, 20, false, false, true},
		"the calls wait, too":                 {&link{up: mega}, 20, true, false, false},
		"one write takes ten seconds":         {&link{up: 100 * kilo}, 1, false, false, false},
		"a socket has taken what takes three": {&link{up: 100 * kilo, buffer: 300 * kilo}, 3, false, false, true},
		"its server is frozen":                {&link{}, 0, false, true, false},
		"its server is frozen, writes wait":   {&link{up: mega}, 3, false, true, false},
		"with a hold, its server is frozen":   {&link{}, 0, false, true, true},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := connect(t, srv.Frontend(0).Addr(), framework.WithSessionTimeout(30*time.Second), tc.link.over(t, srv))
			mustCreate(t, c, "/d", "")
			must.OK(t, c.SetServers(strings.Join([]string{srv.Frontend(0).Addr(), srv.Frontend(1).Addr(), srv.Frontend(2).Addr()}, ",")))
			if tc.hold {
				mustHold(t, c)
			}
			if tc.freeze {
				srv.Frontend(0).Freeze()
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			for range tc.writes {
				wg.Go(func() { _, _ = c.Set(ctx, "/d", make([]byte, 1000<<10), framework.AnyVersion) })
			}
			sleep(100 * time.Millisecond)
			if !tc.calls {
				cancel()
				wg.Wait()
			}
			start := time.Now()
			check(t, c.Close())
			wantWithin(t, start, time.Second)
			wg.Wait()
			wantEqual(t, "sessions that are left", len(srv.Sessions()), 0)
		}, zkserver.WithFrontends(3))
	}
}

// A counted is a connection of a dialer that knows how many are open.
type counted struct {
	net.Conn
	open *atomic.Int64
	once *sync.Once
}

func (c counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func countedDialer(srv *zkserver.Server, open *atomic.Int64) framework.Option {
	return framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := srv.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return counted{conn, open, new(sync.Once)}, nil
	})
}

// If a handshake hangs, its connection ends with the session, before the wire client's own limit.
// Then nothing can renew the session.
func TestTheSessionsEndEndsAHandshakeThatHangs(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"the first": false, "a reconnection": true} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var open atomic.Int64
			c := newClient(t, srv.Addr(), countedDialer(srv, &open), framework.WithSessionTimeout(span),
				framework.WithConnectTimeout(time.Minute))
			if before {
				must.OK(t, c.AwaitConnected(t.Context()))
			}
			held := srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.HoldReply})
			srv.Cut()
			await(t, held.Hit(), "the handshake")
			sleep(time.Millisecond)
			if n := open.Load(); n != 1 {
				t.Fatalf("%d connections", n)
			}
			done := background(func() error { return c.Close() })
			sleep(time.Millisecond)
			wantEqual(t, "connections after the session's end", open.Load(), 0)
			check(t, <-done)
		})
	}
}

func TestAllConnectionsAreClosedInTheEnd(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var open atomic.Int64
		c := connect(t, srv.Addr(), countedDialer(srv, &open), framework.WithSessionTimeout(span))
		for i := range 6 {
			h := mustHold(t, c)
			if i%2 == 0 {
				srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
				srv.Cut()
			} else {
				must.OK(t, srv.Expire(h.Session()))
			}
			await(t, h.Lost(), "loss")
			must.OK(t, c.AwaitConnected(t.Context()))
		}
		sleep(time.Minute) // the sessions that were replaced are closed by then
		wantEqual(t, "connections", open.Load(), 1)
		must.OK(t, c.Close())
		wantEqual(t, "connections of a closed client", open.Load(), 0)
	})
}
