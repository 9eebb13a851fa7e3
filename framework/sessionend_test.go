package framework_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
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
			if err := srv.Expire(id); err != nil {
				t.Fatal(err)
			}
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
				if err := c.AwaitConnected(t.Context()); err != nil {
					t.Fatal(err)
				}
				seen.await(t, connecting, connected, suspended, lost, connected)
				wantErr(t, "the change to Lost", seen.last(lost).Cause, tc.want)
				if got := seen.last(lost).Session; got != h.Session() {
					t.Errorf("session %#x was lost, want %#x", got, h.Session())
				}
			})
		})
	}
}

func TestAnOutageIsToldWithItsCauseAndEndsWithTheWatchesTold(t *testing.T) {
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

func TestReconfigureLeavesAServerOnlyIfItIsNotAmongTheNew(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := connect(t, "a.test,b.test", framework.WithDialer(srv.Dial), framework.WithStateListener(seen.add))
		id := c.Session().ID
		if err := c.Reconfigure("b.test,c.test,a.test"); err != nil {
			t.Fatal(err)
		}
		sleep(time.Second)
		seen.await(t, connecting, connected)
		if err := c.Reconfigure("d.test,e.test"); err != nil {
			t.Fatal(err)
		}
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
		c = virtual(t, srv, framework.WithACLProvider(func(string) []framework.ACL {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			return framework.OpenACL()
		}))
		_, err := c.Create(t.Context(), "/node", nil)
		wantErr(t, "create", err, framework.ErrClosed)
	})
}

// A handshake that hangs does not keep Close, or the end of the session, waiting.
func TestCloseLeavesAHandshakeThatHangs(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"the first": false, "a reconnection": true} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c := newClient(t, srv.ConnectString(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(span),
					framework.WithConnectTimeout(time.Minute))
				if before {
					if err := c.AwaitConnected(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				held := srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.HoldReply})
				srv.Cut()
				await(t, held.Hit(), "the handshake")
				sleep(time.Millisecond)
				start := time.Now()
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

func TestTheLogTellsOfASessionThatWasGivenUpAndClosed(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.DebugLevel)
		g := digGrave(t, srv, framework.WithLogger(zap.New(core)))
		g.heal()
		g.rests(t, 10*time.Millisecond)
		sleep(time.Second)
		if n := logs.FilterMessage("closed the session that was given up").Len(); n != 1 {
			t.Errorf("%d lines in the log, want one", n)
		}
		if n := logs.FilterMessage("cannot close the session that was given up").Len(); n != 0 {
			t.Errorf("%d lines tell of a failure", n)
		}
	})
}
