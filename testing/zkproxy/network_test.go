package zkproxy_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

func TestRefuse(t *testing.T) {
	t.Parallel()
	proxy, client := proxied(t)
	proxy.Refuse()
	if conn, err := net.DialTimeout("tcp", proxy.Addr(), soon); err == nil {
		refused := &peer{t: t, conn: conn.(*net.TCPConn)}
		refused.wantEnd()
		_ = conn.Close() // reset already
	}
	client.wantReply(client.ask())
	proxy.Heal()
	connect(t, proxy.Addr())
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
			speaking.greet()
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
	proxy, client := proxied(t)
	const requests = 5000 // more than a queue takes
	proxy.Blackhole(zkproxy.ToClient)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range requests {
			client.ask()
		}
	}()
	client.wantSilence()
	proxy.Heal()
	for xid := range int32(requests) {
		client.wantReply(xid + 1)
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

func TestLatency(t *testing.T) {
	t.Parallel()
	proxy, client := proxied(t)
	const rtt = 100 * time.Millisecond
	proxy.SetLatency(rtt)
	start := time.Now()
	client.wantReply(client.ask())
	if took := time.Since(start); took < rtt {
		t.Errorf("a round trip took %v; want %v at least", took, rtt)
	}
	proxy.SetLatency(0)
	zktest.Eventually(t, soon, "a round trip without latency", func() bool { // a busy machine delays some
		start = time.Now()
		client.wantReply(client.ask())
		return time.Since(start) < rtt
	})
}

// The rest of a round trip is the cost of a proxy, compared with a direct connection.
func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range []struct {
		name string
		rtt  time.Duration
	}{
		{"direct", -1}, {"0", 0}, {"200us", 200 * time.Microsecond}, {"1ms", time.Millisecond}, {"5ms", 5 * time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkRoundTrip(b, c.rtt) })
	}
}

func benchmarkRoundTrip(b *testing.B, rtt time.Duration) {
	b.Helper()
	server := zktest.Shared(b)
	addr := server.Addr()
	if rtt >= 0 {
		proxy := zkproxy.Run(b, addr)
		proxy.SetLatency(rtt)
		addr = proxy.Addr()
	}
	client := connect(b, addr)
	b.ReportAllocs()
	for b.Loop() {
		client.wantReply(client.ask())
	}
}
