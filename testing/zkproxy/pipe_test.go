package zkproxy_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// bubbleSession is the timeout of sessions in a bubble.
const bubbleSession = 6 * time.Second

// quietLogger keeps the client's log out of the test's.
type quietLogger struct{}

func (quietLogger) Printf(string, ...any) {}

// wantState waits for a state and returns when it came.
func wantState(t *testing.T, events <-chan zk.Event, want zk.State) time.Time {
	t.Helper()
	deadline := time.After(soon)
	for {
		select {
		case event := <-events:
			if event.State == want {
				return time.Now()
			}
		case <-deadline:
			t.Fatalf("state %v didn't come", want)
		}
	}
}

// A bubble is an embedded server, a proxy in front of it, and a client of that.
type bubble struct {
	server *zkserver.Server
	proxy  *zkproxy.Proxy
	conn   *zk.Conn
	events <-chan zk.Event
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, body func(t *testing.T, b bubble)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := zkserver.Run(t)
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
			return server.Dial(ctx, "tcp", server.Addr())
		})
		conn, events := must.Get2(zk.Connect([]string{proxy.Addr()}, bubbleSession, zk.WithLogger(quietLogger{}),
			zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
				return proxy.Dial(context.Background(), network, addr)
			})))(t)
		t.Cleanup(conn.Close)
		wantState(t, events, zk.StateHasSession)
		body(t, bubble{server, proxy, conn, events})
	})
}

func TestPipeCarriesRequestsAndRules(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		lost := b.proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: "/node", Action: fault.DropReply})
		if _, err := b.conn.Create("/node", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("Create() = %v; want ErrConnectionClosed", err)
		}
		wantHit(t, lost.Hit())
		wantState(t, b.events, zk.StateHasSession)
		if _, stat, err := b.conn.Get("/node"); err != nil || stat.EphemeralOwner != b.conn.SessionID() {
			t.Errorf("Get() = %+v, %v; want the node, of the same session", stat, err)
		}
		if n := b.proxy.Count(fault.Create); n != 1 {
			t.Errorf("%d creates; want 1", n)
		}
		if s := b.proxy.Sessions(); len(s) != 1 || s[0].ID != b.conn.SessionID() {
			t.Errorf("sessions %v; want the client's", s)
		}
	})
}

// The client closes the connection 2/3 of its timeout after the last frame that it got. The session ends a
// whole timeout after the last that the server got.
func TestPipeBlackhole(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		must.Get2(b.conn.Exists("/"))(t)
		start := time.Now()
		b.proxy.Blackhole(zkproxy.Both)
		if took := wantState(t, b.events, zk.StateDisconnected).Sub(start); took != bubbleSession*2/3 {
			t.Errorf("disconnected after %v; want %v", took, bubbleSession*2/3)
		}
		if n := len(b.server.Sessions()); n != 1 {
			t.Fatalf("%d sessions; want 1", n)
		}
		<-time.After(time.Until(start.Add(bubbleSession)))
		synctest.Wait()
		if n := len(b.server.Sessions()); n != 0 {
			t.Errorf("%d sessions a whole timeout after the last request; want 0", n)
		}
		b.proxy.Heal()
		wantState(t, b.events, zk.StateExpired)
		wantState(t, b.events, zk.StateHasSession)
	})
}

func TestPipeRefusesAndHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		b.proxy.Refuse()
		b.proxy.Cut()
		if _, err := b.proxy.Dial(t.Context(), "tcp", b.proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("Dial() = %v while refused; want ECONNREFUSED", err)
		}
		wantState(t, b.events, zk.StateDisconnected)
		b.proxy.Hang()
		conn, err := b.proxy.Dial(t.Context(), "tcp", b.proxy.Addr())
		if err != nil {
			t.Fatalf("Dial() = %v while hanging; want a connection", err)
		}
		defer conn.Close()
		must.OK(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		if _, err := conn.Write([]byte("ruok")); err == nil {
			t.Error("the proxy has read from a connection while hanging")
		}
		b.proxy.Heal()
		wantState(t, b.events, zk.StateHasSession)
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.proxy.Dial(dead, "tcp", b.proxy.Addr()); !errors.Is(err, context.Canceled) {
			t.Errorf("Dial() = %v with a dead context; want Canceled", err)
		}
	})
}

func TestPipeLatencyIsExact(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		const rtt = 7*time.Millisecond + 3*time.Microsecond
		b.proxy.SetLatency(rtt)
		start := time.Now()
		must.Get2(b.conn.Exists("/"))(t)
		if took := time.Since(start); took != rtt-rtt%2 {
			t.Errorf("a round trip took %v; want %v", took, rtt-rtt%2)
		}
	})
}

func TestPipeIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxy := zkproxy.StartPipe(func(context.Context) (net.Conn, error) { return nil, syscall.ECONNREFUSED })
		conn := must.Get(proxy.Dial(t.Context(), "tcp", proxy.Addr()))(t)
		for range 2 {
			must.OK(t, proxy.Close())
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a connection outlives the proxy")
		}
		if _, err := proxy.Dial(t.Context(), "tcp", proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("Dial() = %v after Close; want ECONNREFUSED", err)
		}
	})
}
