package framework_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestADialMayTakeAsLongAsTheConnectTimeout(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-time.After(1200 * time.Millisecond): // the wire client's own limit is a second
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	c := connect(t, zktest.Shared(t).Addr(), framework.WithDialer(slow), framework.WithConnectTimeout(5*time.Second))
	wantEqual(t, "state", c.State(), connected)
	hopeless := newClient(t, zktest.Shared(t).Addr(), framework.WithDialer(slow), framework.WithConnectTimeout(100*time.Millisecond))
	wantErr(t, "await", hopeless.AwaitConnected(within(t, 500*time.Millisecond)), context.DeadlineExceeded, framework.ErrNotConnected)
}

// TestASlowHandshakeIsFollowedByAProof has a server that answers a handshake just before the
// session timeout is over. A request that was sent that long ago proves little.
func TestASlowHandshakeIsFollowedByAProof(t *testing.T) {
	t.Parallel()
	const timeout = 6 * time.Second
	for name, hold := range map[string]bool{"with a hold": true, "without": false} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			c := virtual(t, srv, framework.WithSessionTimeout(timeout), framework.WithStateListener(seen.add))
			if hold {
				mustTakeHold(t, c)
			}
			sleep(time.Second)
			srv.Freeze()
			sleep(9500 * time.Millisecond)
			srv.Thaw()
			must.OK(t, c.AwaitConnected(t.Context()))
			sleep(time.Millisecond) // the listener is called
			before := len(seen.list())
			sleep(5 * timeout)
			if after := seen.states(); len(after) != before {
				t.Errorf("states %v: want none after the %d that end with Connected", after, before)
			}
		})
	}
}

// A holder with OnLost is told before the ensemble learns of the session's end, so the loss is reported before the next
// grant. The session lives while Close waits for a holder: without pings, the ensemble would end one of 4 s before that.
func TestTheSessionLivesUntilItsHoldersAreTold(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Second} { // since the latest ping
		synctest.Test(t, func(t *testing.T) {
			var ended atomic.Bool
			srv := zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithObserver(func(x zkserver.Transaction) {
				if x.Ended != 0 {
					ended.Store(true)
				}
			}))...)
			c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(4*time.Second))
			early := true
			mustHold(t, c).OnLost(func(error) {
				sleep(4800 * time.Millisecond)
				early = ended.Load()
			})
			sleep(after)
			must.OK(t, c.Close())
			if early || !ended.Load() {
				t.Errorf("the ensemble has ended the session: %v, before its holder was told: %v", ended.Load(), early)
			}
		})
	}
}

// TestCloseWaitsForTheNotificationsOfALoss has the socket's Close stuck while the loss is reported.
func TestCloseWaitsForTheNotificationsOfALoss(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, stuck, free := cloggedClient(t, srv)
		goOn := make(chan struct{})
		h := mustHold(t, c)
		var notified atomic.Bool
		h.OnLost(func(error) {
			<-goOn
			notified.Store(true)
		})
		srv.Freeze()
		sleep(time.Until(h.Deadline()))
		if !stuck.Load() {
			t.Fatal("nobody closes the connection")
		}
		go h.Err() // it notices the loss
		closed := make(chan struct{})
		synctest.Wait()
		go func() {
			_ = c.Close() // when it returns is the test
			close(closed)
		}()
		synctest.Wait()
		free()
		sleep(4 * time.Second) // it waits for five
		wantOpen(t, closed, "Close returned before the loss was told")
		close(goOn)
		<-closed
		if !notified.Load() {
			t.Error("the loss was not told")
		}
	})
}

func TestWhatEndsASessionIsReported(t *testing.T) {
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
		}, framework.ErrSessionExpired, "instead of"},
		"its time ran out": {func(_ *testing.T, _ *zkserver.Server, proxy *zkproxy.Proxy, _ int64) {
			disconnect(proxy)
		}, framework.ErrSessionDeadline, "deadline"},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			c, proxy := proxied(t, srv, framework.WithStateListener(seen.add))
			h := mustHold(t, c)
			w := mustWatch(t, c, "/nothing", framework.WatchExists)
			tc.end(t, srv, proxy, c.Session().ID)
			await(t, h.Lost(), "loss")
			wantEvent(t, w, framework.EventReconnected)
			wantErr(t, "the hold", h.Err(), tc.want, framework.ErrSessionEnded)
			if !strings.Contains(h.Err().Error(), tc.text) {
				t.Errorf("the hold's error %q does not say %q", h.Err(), tc.text)
			}
			proxy.Heal()
			must.OK(t, c.AwaitConnected(t.Context()))
			seen.await(t, connecting, connected, suspended, lost, connected)
			wantErr(t, "the change to Lost", seen.last(lost).Cause, tc.want)
			wantEqual(t, "session that was lost", seen.last(lost).Session, h.Session())
			if c.Session().ID == h.Session() {
				t.Errorf("session %#x after its loss", h.Session())
			}
			wantErr(t, "to secure a hold that is lost", h.Secure(t.Context()), tc.want)
			w = mustWatch(t, c, "/nothing", framework.WatchExists)
			must.OK(t, c.Close())
			wantEvent(t, w, framework.EventReconnected)
		})
	}
}

func TestOutage_is_reported_with_its_cause(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c, proxy := proxied(t, srv, framework.WithStateListener(seen.add), framework.WithConnectTimeout(time.Second))
		w := mustWatch(t, c, "/nothing", framework.WatchExists)
		disconnect(proxy)
		sleep(time.Millisecond)
		if c.State() != suspended || seen.last(suspended).Cause == nil {
			t.Errorf("%v, because of %v", c.State(), seen.last(suspended).Cause)
		}
		_, _, err := c.Children(within(t, 3*time.Second), "/")
		wantErr(t, "a read", err, framework.ErrNotConnected)
		wantText(t, err, "refused")
		proxy.Heal()
		wantEvent(t, w, framework.EventReconnected)
	})
}

// Between its look at the client and its request a call may be overtaken by Close.
func TestACallThatCloseOvertakesReturns(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var c *framework.Client
		c = virtual(t, srv, framework.WithACLProvider(func(path string) []acl.Entry {
			if path == "/parent" { // it is asked for on the way, after a request was answered
				check(t, c.Close())
			}
			return acl.Open()
		}))
		wantErr(t, "create", last(c.Create(t.Context(), "/parent/node", nil, framework.WithParents())), framework.ErrClosed)
	})
}

// TestAwaitSessionEnd: the client abandons a session, which the ensemble has for a while longer.
func TestAwaitSessionEnd(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, other, path := env.Route(t), env.Client(t), fresh(t)
		c := route.Client(t)
		must.Get(c.Create(t.Context(), path, nil, framework.Ephemeral()))(t)
		former := c.Session().ID
		route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		early := background(func() error { return c.AwaitSessionEnd(t.Context(), former) }) // it is the present one
		route.Cut()
		zktest.Eventually(t, patience, "the next session", func() bool {
			return c.State() == framework.Connected && c.Session().ID != former
		})
		ctx := within(t, time.Millisecond)
		wantErr(t, "AwaitSessionEnd", c.AwaitSessionEnd(ctx, former), context.DeadlineExceeded)
		must.OK(t, c.AwaitSessionEnd(t.Context(), former))
		must.OK(t, must.Receive(t, early, "the session's end"))
		must.OK(t, other.Sync(t.Context(), path))
		wantExists(t, other, path, false)
		must.OK(t, c.AwaitSessionEnd(t.Context(), former+12345))
		present := c.Session().ID
		must.OK(t, c.Close())
		wantErr(t, "AwaitSessionEnd after Close", c.AwaitSessionEnd(t.Context(), present), framework.ErrClosed)
	})
}

// TestLeaseMargin compares the margin that a Session shows with what WithLeaseMargin says of the negotiated timeout. Its
// deadline is that timeout after the handshake.
func TestLeaseMargin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		timeout time.Duration
		given   []framework.Option
		want    time.Duration
	}{
		"the default":                   {30 * time.Second, nil, 3500 * time.Millisecond},
		"a third of a short timeout":    {6 * time.Second, nil, 2 * time.Second},
		"as it is given":                {30 * time.Second, []framework.Option{framework.WithLeaseMargin(9 * time.Second)}, 9 * time.Second},
		"half the timeout, at the most": {30 * time.Second, []framework.Option{framework.WithLeaseMargin(20 * time.Second)}, 15 * time.Second},
		"none, if none was asked for":   {30 * time.Second, []framework.Option{framework.WithLeaseMargin(0)}, 0},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			start := time.Now()
			got := virtual(t, srv, append(tc.given, framework.WithSessionTimeout(tc.timeout))...).Session()
			wantEqual(t, "the margin", got.Margin, tc.want)
			wantEqual(t, "the timeout", got.Timeout, tc.timeout)
			// A handshake counts a little less than it might.
			wantBetween(t, "time until the deadline", got.Deadline.Sub(start), tc.timeout*15/16, tc.timeout)
		})
	}
}
