package framework_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

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

// TestSecureWaitsAsLongAsTheSessionCanBeValid asks for a proof when the certain deadline has
// passed and the session is presumed to be valid. There is no connection for longer than an
// operation waits for one.
func TestSecureWaitsAsLongAsTheSessionCanBeValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const session, margin = 40 * time.Second, 20 * time.Second // far apart: the deadline and what is presumed
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(session),
			framework.WithLeaseMargin(margin), framework.WithConnectTimeout(time.Second))
		defer c.Close()
		time.Sleep(session) //nolint:forbidigo // virtual: the handshake is old by then
		h := must.Get(c.HoldSession(t.Context()))(t)
		defer h.Release()
		time.Sleep(time.Second) //nolint:forbidigo // virtual: the heartbeat has been answered
		srv.Refuse()
		srv.Cut()
		time.Sleep(time.Until(h.Deadline())) //nolint:forbidigo // virtual
		if err := h.Err(); err != nil {
			t.Fatalf("given up while it may stand: %v", err)
		}
		secured := make(chan error, 1)
		go func() { secured <- h.Secure(t.Context()) }()
		time.Sleep(3 * time.Second) //nolint:forbidigo // virtual: longer than the connect timeout
		synctest.Wait()
		select {
		case err := <-secured:
			t.Fatalf("gave up for lack of a connection: %v", err)
		default:
		}
		srv.Accept()
		if err := <-secured; err != nil {
			t.Error(err)
		}
	})
}

// TestALeaseMarginThatDoesNotFitIsCutAndLogged has a server that grants a shorter session timeout than
// the margin.
func TestALeaseMarginThatDoesNotFitIsCutAndLogged(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.ErrorLevel)
		c := virtual(t, srv, framework.WithSessionTimeout(time.Minute), framework.WithLeaseMargin(10*time.Second), framework.WithLogger(zap.New(core)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h := must.Get(c.HoldSession(ctx))(t)
		for range 3 {
			srv.Cut()
			sleep(20 * time.Second)
		}
		if err := h.Secure(ctx); err != nil {
			t.Errorf("a healthy session can't be secured: %v", err)
		}
		sleep(time.Minute)
		if err := h.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		const message = "lease margin is more than half the session timeout that the server granted"
		if n := logs.FilterMessage(message).Len(); n != 1 {
			t.Errorf("logged %d times, want once a session", n)
		}
	}, zkserver.WithSessionTimeouts(time.Second, 6*time.Second))
}
