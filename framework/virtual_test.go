package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// The tests of this file are about time: a server within the process, connected by
// pipes, in virtual time.

// virtually runs fn in virtual time with a server.
func virtually(t *testing.T, fn func(t *testing.T, srv *zkserver.Server), opts ...zkserver.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fn(t, zkserver.Run(t, append(zkenv.DrawVersion(t), opts...)...))
	})
}

// runVirtually runs a subtest by [virtually].
func runVirtually(t *testing.T, name string, fn func(t *testing.T, srv *zkserver.Server), opts ...zkserver.Option) {
	t.Helper()
	t.Run(name, func(t *testing.T) { virtually(t, fn, opts...) })
}

// virtual returns a connected client of srv.
func virtual(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return connect(t, srv.Addr(), append([]framework.Option{framework.WithDialer(srv.Dial)}, opts...)...)
}

// inTurn leads one connection after another to the front ends, and further ones to the last.
func inTurn(srv *zkserver.Server, frontends ...int) framework.Option {
	var dials atomic.Int32
	return framework.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		n := min(int(dials.Add(1)), len(frontends))
		return srv.Dial(ctx, network, srv.Frontend(frontends[n-1]).Addr())
	})
}

// An operation whose policy pauses for an hour makes its next attempt as soon as the client is connected, whenever that
// is: before the failure is known, or between that and the pause.
func TestAConnectionEndsThePause(t *testing.T) {
	breaks := func(t *testing.T, srv *zkserver.Server, c *framework.Client) {
		t.Helper()
		srv.Cut()
		awaitState(t, c, framework.Suspended)
		awaitState(t, c, framework.Connected)
	}
	nothing := func(*testing.T, *zkserver.Server, *framework.Client) {}
	for name, tc := range map[string]struct {
		attempt, pause func(*testing.T, *zkserver.Server, *framework.Client)
	}{
		"it breaks and returns during the attempt": {breaks, nothing},
		"it breaks and returns after the attempt":  {nothing, breaks},
		"there is none until after the attempt": {func(t *testing.T, srv *zkserver.Server, c *framework.Client) {
			t.Helper()
			disconnect(srv)
			awaitState(t, c, framework.Suspended)
		}, func(t *testing.T, srv *zkserver.Server, c *framework.Client) {
			t.Helper()
			srv.Accept()
			awaitState(t, c, framework.Connected)
		}},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var c *framework.Client
			c = virtual(t, srv, framework.WithSessionTimeout(time.Minute), framework.WithRetry(notingPolicy{
				Policy: retry.Forever(time.Hour), note: func() { tc.pause(t, srv, c) },
			}))
			start, attempts := time.Now(), 0
			err := framework.Repeat(t.Context(), c, func() error {
				if attempts++; attempts > 1 {
					return nil
				}
				tc.attempt(t, srv, c)
				return framework.ErrUnknownOutcome
			})
			if took := time.Since(start); err != nil || took > time.Minute {
				t.Errorf("%v after %v, want no pause of an hour", err, took)
			}
		})
	}
}

func TestAReconnectionIsNotMadeToWait(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		for range 20 {
			srv.Cut()
			start := time.Now()
			must.Get2(c.Children(t.Context(), "/"))(t)
			if took := time.Since(start); took > 500*time.Millisecond { // the wire client by itself pauses for a second
				t.Errorf("usable again after %v", took)
			}
		}
	})
}

func TestBrokenHandshakesCostAnAttemptEach(t *testing.T) {
	const attempt = 300 * time.Millisecond
	for _, action := range []fault.Action{fault.Garbage, fault.HalfAnswer, fault.DropReply, fault.HoldReply} {
		runVirtually(t, action.String(), func(t *testing.T, srv *zkserver.Server) {
			srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: action})
			start := time.Now()
			c := virtual(t, srv, framework.WithConnectTimeout(attempt))
			wantWithin(t, start, 2*attempt)
			id := c.Session().ID
			srv.Rules().Add(fault.Rule{Op: fault.Connect, Action: action}) // the same when it reconnects
			srv.Cut()
			if _, _, err := c.Children(t.Context(), "/"); err != nil || c.Session().ID != id {
				t.Errorf("session %#x after a reconnection (%v), want %#x", c.Session().ID, err, id)
			}
		})
	}
}

func TestLost_by_the_own_clock_on_a_frozen_server(t *testing.T) {
	for name, hold := range map[string]bool{"with a secured hold": true, "without": false} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			c := virtual(t, srv, framework.WithStateListener(seen.add))
			if hold {
				mustHold(t, c)
			}
			timeout := c.Session().Timeout
			srv.Freeze()
			<-time.After(timeout + time.Nanosecond)
			synctest.Wait()
			if seen.last(lost).To == 0 {
				t.Errorf("states %v: no Lost within the session timeout of %v", seen.states(), timeout)
			}
			srv.Thaw()
			must.OK(t, c.AwaitConnected(t.Context()))
		})
	}
}
