package main

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestSessionExpiresInTheMiddle runs the service twice, as two processes would. When the holder is
// at its second parcel, its network fails and its session expires, and the other gets the lock.
// The test checks that the first has stopped by then.
//
// Everything in the function given to synctest.Test runs in virtual time: the server, its clients,
// the timers of the work. Shipping a parcel takes a minute there and nothing here. Three things
// make that work:
//
//   - the server is started within, and ends within, as the clients do;
//   - clients reach it through memory and not through sockets, by [zkserver.Server.Dial] or, to inject
//     faults, by a proxy's [zkproxy.Proxy.Dial];
//   - the code under test waits by package time, channels and contexts.
func TestSessionExpiresInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t)
		network := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
			return server.Dial(ctx, "tcp", server.Addr())
		})
		var (
			shipments log
			running   sync.WaitGroup
		)
		for dock, dial := range []dialFunc{network.Dial, server.Dial} {
			s := newTestShipper(t, dial, server.Addr(), dock, &shipments)
			running.Go(func() {
				if err := s.run(t.Context()); err != nil {
					t.Errorf("dock %d: %v", dock, err)
				}
			})
			synctest.Wait() // the first has the lock before the second asks for it
		}

		began := time.Now()
		<-time.After(70 * time.Second)
		network.Blackhole(zkproxy.Both)
		<-time.After(time.Minute)
		network.Heal()
		running.Wait()

		want := []event{
			{dock: 0, parcel: 1, what: "begun"},
			{dock: 0, parcel: 1, what: "shipped"},
			{dock: 0, parcel: 2, what: "begun"},
			{dock: 0, parcel: 2, what: "stopped"},
			{dock: 1, parcel: 2, what: "begun"},
			{dock: 1, parcel: 2, what: "shipped"},
			{dock: 1, parcel: 3, what: "begun"},
			{dock: 1, parcel: 3, what: "shipped"},
		}
		if got := shipments.events; !slices.Equal(got, want) {
			t.Errorf("shipments:\n%v\nwant:\n%v", got, want)
		}
		// A minute for each of the three, ten seconds without effect, and the session's timeout, 30 s.
		limit := 3*time.Minute + 10*time.Second + 30*time.Second
		if took := time.Since(began); took > limit {
			t.Errorf("took %v, want at most %v: the lock must go on when the session has expired", took, limit)
		}
	})
}

// A dialFunc connects a client to addr.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// newTestShipper returns a shipper of three parcels whose work is a minute's and goes to the log.
func newTestShipper(t *testing.T, dial dialFunc, connect string, dock int, shipments *log) *shipper {
	t.Helper()
	c, err := framework.NewClient(connect, framework.WithDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := newShipper(c, "/shipping", 3, func(ctx context.Context, parcel int) error {
		shipments.add(event{dock, parcel, "begun"})
		if err := pause(ctx, time.Minute); err != nil {
			shipments.add(event{dock, parcel, "stopped"})
			return err
		}
		shipments.add(event{dock, parcel, "shipped"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An event is what happened to a parcel at a dock.
type event struct {
	dock, parcel int
	what         string
}

// A log is what happened, in order.
type log struct {
	mu     sync.Mutex
	events []event
}

func (l *log) add(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}
