package framework_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// Counted connections are those of a dialer that knows how many are open.
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
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
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
				done := make(chan error)
				go func() { done <- c.Close() }()
				sleep(time.Millisecond)
				if n := open.Load(); n != 0 {
					t.Errorf("%d connections after the session's end", n)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAllConnectionsAreClosedInTheEnd(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var open atomic.Int64
		c := connect(t, srv.Addr(), countedDialer(srv, &open), framework.WithSessionTimeout(span))
		for range 3 {
			h := mustHold(t, c)
			srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
			srv.Cut()
			await(t, h.Lost(), "loss")
			must.OK(t, c.AwaitConnected(t.Context()))
		}
		sleep(time.Minute) // the sessions that were replaced are closed by then
		if n := open.Load(); n != 1 {
			t.Errorf("%d connections, want the one that is in use", n)
		}
		must.OK(t, c.Close())
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections of a closed client", n)
		}
	})
}
