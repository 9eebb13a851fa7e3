package zkproxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

func TestCut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	other := connect(t, s.proxy.Addr())
	if got := s.proxy.Cut(); got != 2 {
		t.Errorf("Cut() = %d; want 2", got)
	}
	s.client.wantEnd()
	other.wantEnd()
	again := dial(t, s.proxy.Addr())
	again.id, again.password = s.client.id, s.client.password
	again.sendHandshake()
	again.receiveHandshake()
	if again.id != s.client.id {
		t.Errorf("session %#x after the cut; want %#x resumed", again.id, s.client.id)
	}
}

func TestBlackhole(t *testing.T) {
	t.Parallel()
	cases := []struct {
		direction zkproxy.Direction
		applied   bool // while the hole is there
	}{
		{zkproxy.ToServer, false},
		{zkproxy.ToClient, true},
		{zkproxy.Both, false},
	}
	for _, c := range cases {
		t.Run(c.direction.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.proxy.Blackhole(c.direction)
			first := s.client.send(proto.OpCreate, s.create(s.node))
			second := s.client.ask(s.node)
			s.client.wantSilence()
			if c.applied {
				zktest.Eventually(t, soon, "the create is applied", func() bool { return s.direct.exists(s.node) })
			} else if s.direct.exists(s.node) {
				t.Error("the create has been applied")
			}
			newcomer := dial(t, s.proxy.Addr())
			newcomer.sendHandshake()
			newcomer.wantSilence()

			s.proxy.Heal()
			s.client.wantReplies(first, second)
			newcomer.receiveHandshake()
			newcomer.exists("/")
		})
	}
}

func TestBlackholeWithholdsTheEndOfAConnection(t *testing.T) {
	t.Parallel()
	t.Run("of the server's", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.proxy.Blackhole(zkproxy.ToClient)
		must.OK(t, zktest.KillSession(t.Context(), zktest.Shared(t).Addr(), s.client.id, s.client.password))
		s.client.wantSilence()
		s.proxy.Heal()
		s.client.wantEnd()
	})
	t.Run("of the client's, behind what it has sent", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.proxy.Blackhole(zkproxy.ToServer)
		s.client.send(proto.OpCreate, s.create(s.node))
		must.OK(t, s.client.conn.Close())
		s.direct.exists("/")
		if s.direct.exists(s.node) {
			t.Error("the create has been applied")
		}
		s.proxy.Heal()
		zktest.Eventually(t, soon, "the create is applied", func() bool { return s.direct.exists(s.node) })
	})
}

func TestBlackholeKeepsTheServerFromBeingDialled(t *testing.T) {
	t.Parallel()
	listener := must.Get(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer listener.Close()
	accept := func(within time.Duration) error {
		must.OK(t, listener.SetDeadline(time.Now().Add(within)))
		conn, err := listener.Accept()
		if err == nil {
			_ = conn.Close() // it was only to be seen
		}
		return err
	}
	proxy := zkproxy.Run(t, listener.Addr().String())
	proxy.Blackhole(zkproxy.ToServer)
	dial(t, proxy.Addr()).sendHandshake()
	if err := accept(quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the server was dialled in spite of the blackhole: %v", err)
	}
	proxy.Heal()
	if err := accept(soon); err != nil {
		t.Errorf("the server wasn't dialled: %v", err)
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.proxy.Refuse()
	if conn, err := net.DialTimeout("tcp", s.proxy.Addr(), soon); err == nil {
		refused := &peer{t: t, conn: conn.(*net.TCPConn)}
		refused.wantEnd()
		_ = conn.Close() // reset already
	}
	s.client.exists("/")
	s.proxy.Heal()
	connect(t, s.proxy.Addr())
}

func TestHealLeavesRulesAndLatency(t *testing.T) {
	t.Parallel()
	const rtt = 50 * time.Millisecond
	s := newScene(t)
	held := s.proxy.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldReply})
	cut := s.proxy.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore})
	s.proxy.SetLatency(rtt)
	s.proxy.Blackhole(zkproxy.Both)
	s.proxy.Hang()
	xid := s.client.ask("/")
	s.proxy.Heal()
	wantHit(t, held.Hit())
	s.client.wantSilence()
	s.proxy.Rules().Clear()
	s.client.wantReplies(xid)
	start := time.Now()
	s.client.must(proto.OpGetData, packet{}.string("/").bool(false))
	if took := time.Since(start); took < rtt {
		t.Errorf("a round trip took %v; want %v at least", took, rtt)
	}
	wantNoHit(t, cut.Hit())
}

func TestServerDown(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, freeport.Addr(t))
	p := dial(t, proxy.Addr())
	p.sendHandshake()
	p.wantEnd()
}

func TestOtherProtocolsPass(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	proxy.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.CutBefore})
	for name, finish := range map[string]func(*net.TCPConn) error{
		"a four-letter word":                      func(*net.TCPConn) error { return nil },
		"a four-letter word with an end to input": (*net.TCPConn).CloseWrite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := dial(t, proxy.Addr())
			must.Get(io.WriteString(p.conn, "ruok"))(t)
			must.OK(t, finish(p.conn))
			_ = p.conn.SetReadDeadline(time.Now().Add(soon))
			if answer, err := io.ReadAll(p.conn); err != nil || string(answer) != "imok" {
				t.Errorf("received %q, %v; want imok", answer, err)
			}
		})
	}
	if got := proxy.Count(fault.Connect); got != 0 {
		t.Errorf("%d handshakes in the log; want none", got)
	}
}

// silent is a server that accepts connections and does nothing else.
func silent(t *testing.T) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestCloseEndsWhatIsInProgress(t *testing.T) {
	hold := func(action fault.Action, delay time.Duration) func(*zkproxy.Proxy) {
		return func(p *zkproxy.Proxy) {
			p.Rules().Add(fault.Rule{Op: fault.Connect, Action: action, Delay: delay})
		}
	}
	cases := map[string]func(*zkproxy.Proxy){
		"a server that doesn't answer": func(*zkproxy.Proxy) {},
		"a blackhole":                  func(p *zkproxy.Proxy) { p.Blackhole(zkproxy.Both) },
		"a blackhole to the client":    func(p *zkproxy.Proxy) { p.Blackhole(zkproxy.ToClient) },
		"a connection that hangs":      (*zkproxy.Proxy).Hang,
		"latency":                      func(p *zkproxy.Proxy) { p.SetLatency(time.Hour) },
		"a held request":               hold(fault.HoldRequest, 0),
		"a delayed request":            hold(fault.DelayRequest, time.Hour),
		"a held answer":                hold(fault.HoldReply, 0),
		"garbage":                      hold(fault.Garbage, 0),
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			leak := goleak.IgnoreCurrent()
			proxy := must.Get(zkproxy.Start(silent(t)))(t)
			prepare(proxy)
			speaking, mute := dial(t, proxy.Addr()), dial(t, proxy.Addr())
			speaking.sendHandshake()
			if err := proxy.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			must.OK(t, goleak.Find(leak))
			mute.wantGone()
			if err := proxy.Close(); err != nil {
				t.Errorf("second Close() = %v", err)
			}
			if _, err := net.Dial("tcp", proxy.Addr()); err == nil {
				t.Error("the port is still open")
			}
		})
	}
}

// wantGone checks that the connection ends, whatever comes before.
func (p *peer) wantGone() {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(soon))
	var timeout net.Error
	if _, err := io.Copy(io.Discard, p.conn); errors.As(err, &timeout) && timeout.Timeout() {
		p.t.Error("the connection stands")
	}
}

func TestFloodIsHeldUpAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const requests = 5000 // more than a queue takes
	s.proxy.Blackhole(zkproxy.ToClient)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range requests {
			s.client.ask("/")
		}
	}()
	s.client.wantSilence()
	s.proxy.Heal()
	for xid := range int32(requests) {
		s.client.wantReplies(xid + 1)
	}
	<-sent
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, upstream := range []string{"", "localhost", "localhost:", "::1:2181"} {
		proxy, err := zkproxy.Start(upstream)
		if err == nil {
			t.Errorf("Start(%q): want an error", upstream)
			_ = proxy.Close()
			continue
		}
		if want := "zkproxy: upstream \"" + upstream + "\": must be host:port"; err.Error() != want {
			t.Errorf("Start(%q) = %q; want %q", upstream, err, want)
		}
	}
	proxy := zkproxy.Run(t, silent(t))
	for want, call := range map[string]func(){
		"zkproxy: direction Direction(0): must be ToServer, ToClient or Both": func() { proxy.Blackhole(0) },
		"zkproxy: rtt -1ns: must be at least 0":                               func() { proxy.SetLatency(-1) },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, want) {
					t.Errorf("panic %q; want %q", got, want)
				}
			}()
			call()
		}()
	}
}
