package zkproxy_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
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

// connectBy connects a client by a proxy without a port.
func connectBy(t *testing.T, proxy *zkproxy.Proxy) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events := must.Get2(zk.Connect([]string{proxy.Addr()}, bubbleSession, zk.WithLogger(quietLogger{}),
		zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
			return proxy.Dial(context.Background(), network, addr)
		})))(t)
	t.Cleanup(conn.Close)
	return conn, events
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
		conn, events := connectBy(t, proxy)
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
		<-lost.Hit()
		wantState(t, b.events, zk.StateHasSession)
		if _, stat, err := b.conn.Get("/node"); err != nil || stat.EphemeralOwner != b.conn.SessionID() {
			t.Errorf("Get() = %+v, %v; want the node, of the same session", stat, err)
		}
		if n := b.proxy.Count(fault.Create); n != 1 {
			t.Errorf("%d creates; want 1", n)
		}
		if s := b.proxy.Sessions(); len(s) != 1 || s[0].ID != b.conn.SessionID() || s[0].Timeout != bubbleSession {
			t.Errorf("sessions %v; want the client's, of %v", s, bubbleSession)
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
		if n := b.proxy.Cut(); n != 1 {
			t.Errorf("Cut() = %d; want 1", n)
		}
		if _, err := b.proxy.Dial(t.Context(), "tcp", b.proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("Dial() = %v while refused; want ECONNREFUSED", err)
		}
		wantState(t, b.events, zk.StateDisconnected)
		synctest.Wait()
		if s := b.proxy.Sessions(); len(s) != 0 {
			t.Errorf("sessions %v of connections that were cut; want none", s)
		}
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
		var pipelined sync.WaitGroup
		for range 100 {
			pipelined.Go(func() {
				if _, _, err := b.conn.Exists("/"); err != nil {
					t.Error(err)
				}
			})
		}
		pipelined.Wait()
		if took := time.Since(start); took != rtt-rtt%2 {
			t.Errorf("a round trip took %v; want %v", took, rtt-rtt%2)
		}
	})
}

func TestPipeBlackholeByDirection(t *testing.T) {
	t.Parallel()
	for direction, applied := range map[zkproxy.Direction]bool{zkproxy.ToServer: false, zkproxy.ToClient: true, zkproxy.Both: false} {
		t.Run(direction.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				b.proxy.Blackhole(direction)
				done := make(chan error, 1)
				go func() {
					_, err := b.conn.Create("/node", nil, 0, zk.WorldACL(zk.PermAll))
					done <- err
				}()
				newcomer, events := connectBy(t, b.proxy)
				<-time.After(time.Second)
				if got := slices.Contains(b.server.Paths(), "/node"); got != applied {
					t.Errorf("the create has been applied: %v; want %v", got, applied)
				}
				if len(done) > 0 || newcomer.State() == zk.StateHasSession {
					t.Errorf("an answer came through a blackhole; the newcomer is in state %v", newcomer.State())
				}
				b.proxy.Heal()
				must.OK(t, <-done)
				wantState(t, events, zk.StateHasSession)
			})
		})
	}
}

func TestPipeBlackholeWithholdsTheEndOfAConnection(t *testing.T) {
	t.Parallel()
	t.Run("of the server's", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b bubble) {
			b.proxy.Blackhole(zkproxy.ToClient)
			must.OK(t, b.server.Expire(b.conn.SessionID()))
			<-time.After(time.Second)
			if state := b.conn.State(); state != zk.StateHasSession {
				t.Errorf("state %v behind a blackhole; want HasSession", state)
			}
			b.proxy.Heal()
			wantState(t, b.events, zk.StateDisconnected)
		})
	})
	t.Run("of the client's, behind what it has sent", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b bubble) {
			conn := must.Get(b.proxy.Dial(t.Context(), "tcp", b.proxy.Addr()))(t)
			must.Get(conn.Write(hello().Frame()))(t)
			must.Get(proto.ReadFrame(conn, 1<<10))(t)
			b.proxy.Blackhole(zkproxy.ToServer)
			must.Get(conn.Write(createRequest(1, "/late", nil)))(t)
			must.OK(t, conn.Close())
			synctest.Wait()
			if slices.Contains(b.server.Paths(), "/late") {
				t.Error("the create has been applied")
			}
			b.proxy.Heal()
			synctest.Wait()
			if !slices.Contains(b.server.Paths(), "/late") {
				t.Error("the create is lost")
			}
		})
	})
}

// The proxy knows a session that its client was told wrongly, and with its password another can take it.
func TestPipeKnowsTheSessionsOfTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		greet := func(hello proto.ConnectRequest) int64 {
			conn := must.Get(b.proxy.Dial(t.Context(), "tcp", b.proxy.Addr()))(t)
			t.Cleanup(func() { _ = conn.Close() }) // it may have ended
			must.Get(conn.Write(hello.Frame()))(t)
			d := proto.NewDecoder(must.Get(proto.ReadFrame(conn, 1<<10))(t))
			return d.ConnectReply().Session
		}
		b.proxy.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		told := greet(hello())
		if known := b.proxy.Sessions(); len(known) != 2 || len(b.server.Sessions()) != 2 {
			t.Fatalf("sessions %v; want the server's: %v", known, b.server.Sessions())
		}
		for _, s := range b.proxy.Sessions() {
			taken := hello()
			taken.Session, taken.Password = s.ID, s.Password
			if got := greet(taken); got != s.ID || got == told {
				t.Errorf("session %d taken as %d; the client was told %d", s.ID, got, told)
			}
		}
	})
}

// A blackhole keeps the server from being dialled, which closes connections that keep silent. That a
// server is down is learned by the end of the connection.
func TestPipeDialsTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dialled := make(chan struct{}, 1)
		proxy := zkproxy.RunPipe(t, func(context.Context) (net.Conn, error) {
			dialled <- struct{}{}
			return nil, syscall.ECONNREFUSED
		})
		proxy.Blackhole(zkproxy.ToServer)
		conn := must.Get(proxy.Dial(t.Context(), "tcp", proxy.Addr()))(t)
		must.Get(conn.Write(hello().Frame()))(t)
		synctest.Wait()
		if len(dialled) != 0 {
			t.Error("the server was dialled in spite of the blackhole")
		}
		proxy.Heal()
		<-dialled
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("something came from a server that is down")
		}
	})
}

func TestPipeHealLeavesRulesAndLatency(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		const rtt = 50 * time.Millisecond
		held := b.proxy.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldReply})
		b.proxy.SetLatency(rtt)
		b.proxy.Blackhole(zkproxy.Both)
		b.proxy.Hang()
		b.proxy.Heal()
		time.AfterFunc(time.Second, held.Release)
		start := time.Now()
		must.Get2(b.conn.Exists("/"))(t)
		if took := time.Since(start); took != time.Second {
			t.Errorf("a reply that is held for a second took %v", took)
		}
		start = time.Now()
		must.Get2(b.conn.Exists("/"))(t)
		if took := time.Since(start); took != rtt {
			t.Errorf("a round trip took %v; want %v", took, rtt)
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
