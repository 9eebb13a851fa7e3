package framework_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// closesInTime closes the client, and fails the test if that takes longer than its
// documentation says.
func closesInTime(t *testing.T, c *framework.Client) {
	t.Helper()
	const limit = time.Second + 100*time.Millisecond
	start := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > limit {
		t.Errorf("Close took %v, want at most %v", took, limit)
	}
}

func TestClose_during_the_close_of_an_earlier_session(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rule fault.Rule
		want bool // that the session has ended when Close returns
	}{
		"the handshake takes a moment": {fault.Rule{Op: fault.Connect, Action: fault.DelayReply, Delay: 300 * time.Millisecond}, true},
		"the close takes a moment":     {fault.Rule{Op: fault.CloseSession, Action: fault.DelayRequest, Delay: 300 * time.Millisecond}, true},
		"the handshake is held up":     {fault.Rule{Op: fault.Connect, Action: fault.HoldRequest, Times: fault.Forever}, false},
		"the close is held up":         {fault.Rule{Op: fault.CloseSession, Action: fault.HoldRequest, Times: fault.Forever}, false},
		"an attempt has just failed":   {fault.Rule{Op: fault.CloseSession, Action: fault.CutBefore}, true},
		"every attempt fails":          {fault.Rule{Op: fault.CloseSession, Action: fault.CutBefore, Times: fault.Forever}, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				g := newAbandonedSession(t, srv)
				tc.rule.Session = g.id
				g.proxy.Rules().Add(tc.rule)
				g.heal()
				must.OK(t, g.client.AwaitConnected(t.Context()))
				<-time.After(leaseMargin + time.Millisecond) // in virtual time: as far as it gets by itself
				if !g.exists() {
					t.Fatal("the session has ended before Close")
				}
				closesInTime(t, g.client)
				if g.exists() == tc.want {
					t.Errorf("when Close has returned the session has ended: %v, want %v", !g.exists(), tc.want)
				}
			})
		})
	}
}

// A caller that closes the client needs no lease margin any more.
func TestClose_ends_the_lease_margin(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		g := newAbandonedSession(t, srv)
		g.heal()
		must.OK(t, g.client.AwaitConnected(t.Context()))
		if !g.exists() {
			t.Fatal("the session has ended before Close")
		}
		closesInTime(t, g.client)
		if g.exists() {
			t.Error("Close has returned, with a connection, and the session has not ended")
		}
	})
}

func TestClose_without_a_server_for_an_earlier_session(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		g := newAbandonedSession(t, srv)
		closesInTime(t, g.client)
		if n := g.dials.Load(); n != 0 {
			t.Errorf("%d dials", n)
		}
	})
}

func TestAbandonedSession_on_a_real_server(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		timeout time.Duration
		harm    func(*zkproxy.Proxy)
	}{
		"by the client's clock": {6 * time.Second, func(p *zkproxy.Proxy) { p.Blackhole(zkproxy.Both) }},
		"for another one": {20 * time.Second, func(p *zkproxy.Proxy) {
			p.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
			p.Cut()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := zktest.Shared(t)
			proxy := zkproxy.Run(t, server.Addr())
			observer := connect(t, server.Addr(), framework.WithSessionTimeout(20*time.Second))
			c := connect(t, proxy.Addr(), framework.WithSessionTimeout(tc.timeout))
			h := mustHold(t, c)
			node := mustCreate(t, c, fresh(t)+"/node", "", framework.Ephemeral())
			gone := mustWatch(t, observer, node, framework.WatchExists)
			tc.harm(proxy)
			await(t, h.Lost(), "loss")
			healed := time.Now()
			proxy.Heal()
			await(t, gone.Fired(), "the end of the ephemeral znode")
			zktest.Eventually(t, patience, "the session is closed, or asked for", func() bool {
				return closedOrAsked(proxy, h.Session(), healed)
			})
			if _, ok, err := observer.Exists(t.Context(), node); err != nil || ok {
				t.Errorf("the znode exists: %v, %v", ok, err)
			}
		})
	}
}

// closedOrAsked reports whether the session was closed through the proxy, or asked for since a
// time. If the machine paused, the session may have expired meanwhile.
func closedOrAsked(proxy *zkproxy.Proxy, session int64, since time.Time) bool {
	return slices.ContainsFunc(proxy.Requests(), func(rq zkproxy.Request) bool {
		return rq.Session == session && (rq.Op == fault.CloseSession || rq.Op == fault.Connect && rq.At.After(since))
	})
}
