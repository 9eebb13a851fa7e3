package framework_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// span is the session timeout of the tests of time. beat is how often a session with holds is
// proven. grace is how long an unproven session waits for a write, and stall how long an answer
// may take.
const (
	span  = 16 * time.Second
	beat  = span / 4
	grace = span / 16
	stall = span / 4
)

// proxied returns a connected client of srv behind a proxy, whose session timeout
// is span.
func proxied(t *testing.T, srv *zkserver.Server, opts ...framework.Option) (*framework.Client, *zkproxy.Proxy) {
	t.Helper()
	proxy := newProxy(t, srv)
	opts = append([]framework.Option{framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(span)}, opts...)
	return connect(t, srv.Addr(), opts...), proxy
}

func newProxy(t *testing.T, srv *zkserver.Server) *zkproxy.Proxy {
	t.Helper()
	return zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
}

// sleep waits in virtual time, and until all other goroutines wait, too.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// mustTakeHold returns a hold that is not secured.
func mustTakeHold(t *testing.T, c *framework.Client) *framework.SessionHold {
	t.Helper()
	h := must.Get(c.HoldSession(t.Context()))(t)
	t.Cleanup(h.Release)
	return h
}

func TestHeartbeat_without_writes(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv)
		sleep(3 * span)
		if n := proxy.Count(fault.Multi, fault.Sync, fault.Exists); n != 0 {
			t.Errorf("%d heartbeats, syncs and probes although nobody holds the session", n)
		}
		taken := time.Now()
		h := mustTakeHold(t, c)
		sleep(grace + 10*beat + beat/2)
		beats := sentAt(proxy, fault.Multi)
		if len(beats) != 11 || beats[0].Sub(taken) != grace {
			t.Fatalf("%d heartbeats, want one after %v and ten more at %v each: %v", len(beats), grace, beat, beats)
		}
		for i := range beats[1:] {
			wantEqual(t, "time between heartbeats", beats[i+1].Sub(beats[i]), beat)
		}
		wantEqual(t, "syncs", proxy.Count(fault.Sync), 0)
		if left := time.Until(h.Deadline()); left <= span/2 {
			t.Errorf("the deadline is %v away", left)
		}
		proxy.ResetRequests()
		for range 10 {
			mustCreate(t, c, fresh(t), "")
			sleep(beat - time.Millisecond)
		}
		wantEqual(t, "heartbeats although writes went out", proxy.Count(fault.Multi), 0)
		h.Release()
		proxy.ResetRequests()
		sleep(3 * span)
		wantEqual(t, "heartbeats, syncs and probes after the release", proxy.Count(fault.Multi, fault.Sync, fault.Exists), 0)
	})
}

// TestAHoldLeavesItsWriteTheFirstWord takes holds as locks do: each is followed by a write.
func TestAHoldLeavesItsWriteTheFirstWord(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv)
		for range 5 {
			sleep(3 * span)
			h := mustTakeHold(t, c)
			mustCreate(t, c, fresh(t), "")
			must.OK(t, h.Secure(t.Context()))
			sleep(beat / 2)
			h.Release()
		}
		wantEqual(t, "heartbeats although each hold is followed by a write", proxy.Count(fault.Multi), 0)
	})
}

// TestADeadlineIsWhatThePaceLeaves looks at a session with a secured hold for a long time. docs/adr/0009
// has the table.
func TestADeadlineIsWhatThePaceLeaves(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		timeout, least time.Duration
		heartbeats     int // per session timeout
	}{
		{4 * time.Second, 1800 * time.Millisecond, 8},
		{6 * time.Second, 2700 * time.Millisecond, 8},
		{10 * time.Second, 4600 * time.Millisecond, 8},
		{30 * time.Second, 18400 * time.Millisecond, 4},
	} {
		runVirtually(t, tc.timeout.String(), func(t *testing.T, srv *zkserver.Server) {
			proxy := newProxy(t, srv)
			proxy.SetLatency(5 * time.Millisecond)
			c := connect(t, srv.Addr(), framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(tc.timeout))
			h := mustHold(t, c)
			sleep(3 * tc.timeout)
			proxy.ResetRequests()
			least := tc.timeout
			for range 1000 {
				sleep(tc.timeout / 100)
				least = min(least, time.Until(h.Deadline()))
			}
			if least < tc.least {
				t.Errorf("the deadline was only %v away, want at least %v", least, tc.least)
			}
			if n := proxy.Count(fault.Multi); n > 10*tc.heartbeats+1 {
				t.Errorf("%d heartbeats in ten session timeouts, want at most %d", n, 10*tc.heartbeats+1)
			}
			if n := proxy.Count(fault.Exists); n > 10*tc.heartbeats+1 {
				t.Errorf("%d probes in ten session timeouts, want at most one a heartbeat", n)
			}
		}, zkserver.WithSessionTimeouts(4*time.Second, time.Minute))
	}
}

// sentAt returns when the requests of a kind went out.
func sentAt(proxy *zkproxy.Proxy, op fault.Op) []time.Time {
	var times []time.Time
	for _, rq := range proxy.Requests() {
		if rq.Op == op {
			times = append(times, rq.At)
		}
	}
	return times
}

// With holds a connection is closed long before its session is in danger.
func TestHeartbeat_without_answers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		holds  bool
		action fault.Action
		op     fault.Op
		want   time.Duration
	}{
		"with a hold, an unanswered heartbeat counts":        {true, fault.HoldReply, fault.Multi, beat + stall},
		"with a hold, a heartbeat that does not arrive does": {true, fault.HoldRequest, fault.Multi, beat + stall},
		"without one, it is the wire client's affair":        {false, fault.HoldReply, fault.Ping, span},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			core, logs := observer.New(zap.DebugLevel)
			c, proxy := proxied(t, srv, framework.WithStateListener(seen.add), framework.WithLogger(zap.New(core)))
			var h *framework.SessionHold
			if tc.holds {
				h = mustHold(t, c)
			}
			start := time.Now()
			met := proxy.Rules().Add(fault.Rule{Op: tc.op, Action: tc.action})
			await(t, met.Hit(), "the fault")
			sleep(span)
			seen.await(t, connecting, connected, suspended, connected)
			took := seen.last(suspended).At.Sub(start)
			if took > tc.want || tc.holds && took != tc.want || !tc.holds && took < span/2 {
				t.Errorf("the connection was given up after %v, want %v", took, tc.want)
			}
			if tc.holds && h.Err() != nil {
				t.Errorf("the hold is lost: %v", h.Err())
			}
			for _, line := range []string{"server stopped answering", "heartbeat failed"} {
				if n := logs.FilterMessage(line).Len(); tc.holds && n != 1 || !tc.holds && n != 0 {
					t.Errorf("%d times in the log: %s", n, line)
				}
			}
		})
	}
}

// A session of which something is secured ends when it can't be certain any more; one
// of which nothing is, when it can't be presumed.
func TestSession_is_abandoned_by(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, c *framework.Client)
		certain bool
		late    bool // the hold at hand is secured when the connection is gone
	}{
		"a secured hold":                      {func(t *testing.T, c *framework.Client) { mustHold(t, c) }, true, false},
		"one secured without a connection":    {func(*testing.T, *framework.Client) {}, true, true},
		"nothing secured":                     {func(*testing.T, *framework.Client) {}, false, false},
		"one that was secured, and released":  {func(t *testing.T, c *framework.Client) { mustHold(t, c).Release() }, false, false},
		"one that was secured twice, and one": {securedTwice, false, false},
		"one released twice, another secured": {releasedTwice, true, false},
		"one secured when it was released":    {securedLate, false, false},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			// Far apart: the deadline and what is presumed.
			c, proxy := proxied(t, srv, framework.WithLeaseMargin(span/2))
			sleep(span)
			h := mustTakeHold(t, c)
			tc.prepare(t, c)
			sleep(4 * span)
			deadline, seen := h.Deadline(), proxy.Requests()
			disconnect(proxy)
			if tc.late {
				sleep(time.Millisecond) // the loop has looked
				must.OK(t, h.Secure(t.Context()))
			}
			want := seen[len(seen)-1].At.Add(span)
			if !want.After(deadline.Add(span / 8)) {
				t.Fatalf("the deadline %v and what is presumed %v are too close", deadline, want)
			}
			if tc.certain {
				want = deadline
			}
			sleep(time.Until(want) - time.Nanosecond)
			wantErr(t, "lost early", h.Err(), nil)
			sleep(2 * time.Millisecond)
			select {
			case <-h.Lost():
			default:
				t.Error("not lost in time")
			}
			wantErr(t, "the loss", h.Err(), framework.ErrSessionDeadline)
		})
	}
}

func securedTwice(t *testing.T, c *framework.Client) {
	t.Helper()
	h := mustHold(t, c)
	wantErr(t, "to secure it again", h.Secure(t.Context()), nil)
	h.Release()
}

func releasedTwice(t *testing.T, c *framework.Client) {
	t.Helper()
	mustHold(t, c)
	h := mustHold(t, c)
	h.Release()
	h.Release()
}

func securedLate(t *testing.T, c *framework.Client) {
	t.Helper()
	h := mustTakeHold(t, c)
	h.Release()
	wantErr(t, "to secure what was released", h.Secure(t.Context()), nil)
}
