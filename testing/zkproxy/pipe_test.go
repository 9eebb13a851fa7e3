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

	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// bubbleSession is the timeout of sessions in a bubble.
const bubbleSession = 6 * time.Second

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
		check.Is(t, must.Err(b.conn.Create("/node", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))), zk.ErrConnectionClosed,
			"Create()")
		wantHit(t, lost.Hit())
		wantState(t, b.events, zk.StateHasSession)
		check.Equal(t, must.Second(b.conn.Get("/node"))(t).EphemeralOwner, b.conn.SessionID(),
			"Get(); want the node, of the same session")
		check.Equal(t, b.proxy.Count(fault.Create), 1, "creates")
		s := b.proxy.Sessions()
		check.That(t, len(s) == 1 && s[0].ID == b.conn.SessionID(), "sessions %v; want the client's", s)
	})
}

// TestPipeBlackhole has the times of TestClientOfABlackholeDisconnectsAndComesBack, to
// the nanosecond.
func TestPipeBlackhole(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		must.Get2(b.conn.Exists("/"))(t)
		start := time.Now()
		b.proxy.Blackhole(zkproxy.Both)
		check.Equal(t, wantState(t, b.events, zk.StateDisconnected).Sub(start), bubbleSession*2/3,
			"disconnected after")
		must.Equal(t, len(b.server.Sessions()), 1, "sessions")
		<-time.After(time.Until(start.Add(bubbleSession)))
		synctest.Wait()
		check.Equal(t, len(b.server.Sessions()), 0, "sessions a whole timeout after the last request")
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
		must.That(t, err == nil, "Dial() = %v while hanging; want a connection", err)
		defer conn.Close()
		must.OK(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = conn.Write([]byte("ruok"))
		check.That(t, err != nil, "the proxy has read from a connection while hanging")
		b.proxy.Heal()
		wantState(t, b.events, zk.StateHasSession)
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = b.proxy.Dial(dead, "tcp", b.proxy.Addr())
		check.That(t, errors.Is(err, context.Canceled), "Dial() = %v with a dead context; want Canceled", err)
	})
}

func TestPipeLatencyIsExact(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		const rtt = 7*time.Millisecond + 3*time.Microsecond
		b.proxy.SetLatency(rtt)
		start := time.Now()
		must.Get2(b.conn.Exists("/"))(t)
		check.Equal(t, time.Since(start), rtt-rtt%2, "a round trip took")
	})
}

func TestPipeIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxy := zkproxy.StartPipe(func(context.Context) (net.Conn, error) { return nil, syscall.ECONNREFUSED })
		conn := must.Get(proxy.Dial(t.Context(), "tcp", proxy.Addr()))(t)
		for range 2 {
			check.OK(t, proxy.Close())
		}
		_, err := conn.Read(make([]byte, 1))
		check.That(t, err != nil, "a connection outlives the proxy")
		_, err = proxy.Dial(t.Context(), "tcp", proxy.Addr())
		check.That(t, errors.Is(err, syscall.ECONNREFUSED), "Dial() = %v after Close; want ECONNREFUSED", err)
	})
}
