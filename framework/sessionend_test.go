package framework_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestWhatEndsASessionIsTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  func(t *testing.T, srv *zkserver.Server, proxy *zkproxy.Proxy, id int64)
		want error
		text string
	}{
		"the ensemble expired it": {func(t *testing.T, srv *zkserver.Server, _ *zkproxy.Proxy, id int64) {
			must.OK(t, srv.Expire(id))
		}, framework.ErrSessionExpired, "expired"},
		"a server answered with another": {func(_ *testing.T, _ *zkserver.Server, proxy *zkproxy.Proxy, _ int64) {
			proxy.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
			proxy.Cut()
		}, framework.ErrSessionReplaced, "instead of"},
		"its time ran out": {func(_ *testing.T, _ *zkserver.Server, proxy *zkproxy.Proxy, _ int64) {
			proxy.Refuse()
			proxy.Cut()
		}, framework.ErrSessionDeadline, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				var seen trail
				c, proxy := proxied(t, srv, framework.WithStateListener(seen.add))
				h := mustHold(t, c)
				w := mustWatch(t, c, "/nothing", framework.WatchExists)
				tc.end(t, srv, proxy, c.Session().ID)
				await(t, h.Lost(), "loss")
				await(t, w.Fired(), "the watch")
				if w.Event() != framework.EventSessionEnded {
					t.Errorf("the watch tells of %v", w.Event())
				}
				wantErr(t, "the hold", h.Err(), tc.want, framework.ErrSessionEnded)
				if !strings.Contains(h.Err().Error(), tc.text) {
					t.Errorf("the hold's error %q does not say %q", h.Err(), tc.text)
				}
				proxy.Heal()
				must.OK(t, c.AwaitConnected(t.Context()))
				seen.await(t, connecting, connected, suspended, lost, connected)
				wantErr(t, "the change to Lost", seen.last(lost).Cause, tc.want)
				if got := seen.last(lost).Session; got != h.Session() {
					t.Errorf("session %#x was lost, want %#x", got, h.Session())
				}
			})
		})
	}
}

func TestOutage_is_reported_with_its_cause(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c, proxy := proxied(t, srv, framework.WithStateListener(seen.add), framework.WithConnectTimeout(time.Second))
		w := mustWatch(t, c, "/nothing", framework.WatchExists)
		proxy.Refuse()
		proxy.Cut()
		sleep(time.Millisecond)
		if c.State() != suspended || seen.last(suspended).Cause == nil {
			t.Errorf("%v, because of %v", c.State(), seen.last(suspended).Cause)
		}
		_, _, err := c.Children(within(t, 3*time.Second), "/")
		wantErr(t, "a read", err, framework.ErrNotConnected)
		if !strings.Contains(err.Error(), "refused") {
			t.Errorf("the error %q does not say what the last attempt met", err)
		}
		proxy.Heal()
		await(t, w.Fired(), "the watch")
		if w.Event() != framework.EventReconnected {
			t.Errorf("the watch tells of %v", w.Event())
		}
	})
}

func TestSetServers_with_the_present_server(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := connect(t, "a.test,b.test", framework.WithDialer(srv.Dial), framework.WithStateListener(seen.add))
		id := c.Session().ID
		must.OK(t, c.SetServers("b.test,c.test,a.test"))
		sleep(time.Second)
		seen.await(t, connecting, connected)
		must.OK(t, c.SetServers("d.test,e.test"))
		sleep(time.Second)
		seen.await(t, connecting, connected, suspended, connected)
		if c.Session().ID != id {
			t.Errorf("session %#x, want %#x", c.Session().ID, id)
		}
	})
}

// Between its look at the client and its request a call may be overtaken by Close.
func TestACallThatCloseOvertakesReturns(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var c *framework.Client
		c = virtual(t, srv, framework.WithACLProvider(func(path string) []acl.Entry {
			if path == "/parent" { // it is asked for on the way, after a request was answered
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			return acl.Open()
		}))
		_, err := c.Create(t.Context(), "/parent/node", nil, framework.WithParents())
		wantErr(t, "create", err, framework.ErrClosed)
	})
}

func TestLog_of_an_abandoned_session(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.DebugLevel)
		g := newAbandonedSession(t, srv, framework.WithLogger(zap.New(core)))
		g.heal()
		g.existsForMargin(t, 10*time.Millisecond)
		sleep(time.Second)
		if n := logs.FilterMessage("closed the session that was given up").Len(); n != 1 {
			t.Errorf("%d lines in the log, want one", n)
		}
		if n := logs.FilterMessage("cannot close the session that was given up").Len(); n != 0 {
			t.Errorf("%d lines tell of a failure", n)
		}
	})
}

// An attempt that fails after the dial says why there is no connection.
func TestWhyThereIsNoConnectionIsTold(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.Garbage, Times: fault.Forever})
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithConnectTimeout(time.Second))
		err := c.AwaitConnected(within(t, 5500*time.Millisecond))
		wantErr(t, "AwaitConnected", err, framework.ErrNotConnected)
		if !strings.Contains(err.Error(), "not a ZooKeeper handshake") {
			t.Errorf("the error %q does not say what answered", err)
		}
	})
}

// Attempts to close an abandoned session come at growing intervals, of which a half is drawn.
func TestAttemptsToCloseASessionSlowDown(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		g := newAbandonedSession(t, srv)
		g.proxy.Rules().Add(fault.Rule{Session: g.id, Op: fault.CloseSession, Action: fault.CutBefore, Times: fault.Forever})
		g.heal()
		g.proxy.ResetRequests()
		sleep(time.Minute)
		var attempts []time.Time
		for _, rq := range g.proxy.Requests() {
			if rq.Op == fault.Connect && rq.Session == g.id {
				attempts = append(attempts, rq.At)
			}
		}
		if len(attempts) < 5 {
			t.Fatalf("%d attempts", len(attempts))
		}
		limit := 50 * time.Millisecond
		for i := range attempts[1:] {
			if gap := attempts[i+1].Sub(attempts[i]); gap < limit/2 || gap >= limit {
				t.Errorf("pause %d is %v, want between %v and %v", i+1, gap, limit/2, limit)
			}
			limit = min(2*limit, 2*time.Second)
		}
	})
}
