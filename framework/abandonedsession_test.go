package framework_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// abandonTimeout is the session timeout of the tests of this file.
const abandonTimeout = 6 * time.Second

// leaseMargin is the lease margin of that timeout.
const leaseMargin = abandonTimeout / 3

// An abandonedSession is a client that has abandoned its session by its own clock, while the
// server still has the session. Its network lets nothing through, and holds handshakes that would
// resume it.
type abandonedSession struct {
	srv    *zkserver.Server
	proxy  *zkproxy.Proxy
	gate   gate // for the client's dials, shut
	client *framework.Client
	id     int64        // the session
	secret []byte       // its password
	dials  atomic.Int64 // of the client, since the loss
	refuse atomic.Int64 // of these dials, the one that fails
}

func newAbandonedSession(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *abandonedSession {
	t.Helper()
	g := &abandonedSession{srv: srv}
	g.proxy = newProxy(t, srv)
	opts = append(opts, framework.WithDialer(g.dial), framework.WithSessionTimeout(abandonTimeout))
	g.client = connect(t, srv.Addr(), opts...)
	g.id, g.secret = framework.SessionSecret(g.client)
	h := mustHold(t, g.client)
	mustCreate(t, g.client, "/locks/node", "", framework.Ephemeral())
	g.proxy.Blackhole(zkproxy.Both)
	<-time.After(abandonTimeout * 3 / 4)
	g.gate.shut()
	await(t, h.Lost(), "loss")
	wantErr(t, "cause of the loss", h.Err(), framework.ErrSessionDeadline)
	synctest.Wait()
	if !g.exists() {
		t.Fatal("the server has expired the session already")
	}
	g.dials.Store(0)
	return g
}

// heal ends the blackhole: what it held arrives, and renews the session. Only then
// does it let the client connect.
func (g *abandonedSession) heal() {
	g.proxy.Heal()
	synctest.Wait()
	g.gate.open()
}

func (g *abandonedSession) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if n := g.dials.Add(1); n == g.refuse.Load() {
		return nil, syscall.ECONNREFUSED
	}
	if err := g.gate.pass(ctx); err != nil {
		return nil, err
	}
	return g.proxy.Dial(ctx, network, addr)
}

// exists reports whether the server has the session.
func (g *abandonedSession) exists() bool {
	return slices.ContainsFunc(g.srv.Sessions(), func(s zkserver.SessionInfo) bool { return s.ID == g.id })
}

// existsForMargin fails the test unless the session ends at the server within the limit, and not before
// the lease margin is over.
func (g *abandonedSession) existsForMargin(t *testing.T, within time.Duration) {
	t.Helper()
	start := time.Now()
	<-time.After(leaseMargin - time.Millisecond)
	g.ends(t, within+time.Millisecond)
	if took := time.Since(start); took < leaseMargin {
		t.Errorf("the session ended after %v, before the lease margin of %v", took, leaseMargin)
	}
}

// ends fails the test unless the session ends at the server within the limit.
func (g *abandonedSession) ends(t *testing.T, within time.Duration) {
	t.Helper()
	start := time.Now()
	zktest.Eventually(t, patience, "the session has ended at the server", func() bool { return !g.exists() })
	wantWithin(t, start, within)
	if slices.Contains(g.srv.Paths(), "/locks/node") {
		t.Error("its ephemeral znode stands")
	}
}

func TestAbandonedSession_is_closed_at_reconnection(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.DebugLevel)
		g := newAbandonedSession(t, srv, framework.WithLogger(zap.New(core)))
		g.heal()
		g.existsForMargin(t, 10*time.Millisecond)
		sleep(time.Second)
		wantEqual(t, "lines of a close", logs.FilterMessage("closed the session that was given up").Len(), 1)
		wantEqual(t, "lines of a failure", logs.FilterMessage("cannot close the session that was given up").Len(), 0)
		if err := g.client.AwaitConnected(t.Context()); err != nil || g.client.Session().ID == g.id {
			t.Errorf("session %#x of %#x's client: %v", g.client.Session().ID, g.id, err)
		}
	})
}

func TestAFaultWhileASessionIsClosedCostsAnAttempt(t *testing.T) {
	t.Parallel()
	const attempt = abandonTimeout / 4
	for name, tc := range map[string]struct {
		op     fault.Op
		action fault.Action
		within time.Duration
	}{
		"the handshake is cut off":                    {fault.Connect, fault.CutBefore, time.Second},
		"the handshake's answer is lost":              {fault.Connect, fault.DropReply, time.Second},
		"the handshake does not arrive":               {fault.Connect, fault.HoldRequest, attempt + time.Second},
		"the handshake is not answered":               {fault.Connect, fault.HoldReply, attempt + time.Second},
		"half of the handshake is answered":           {fault.Connect, fault.HalfAnswer, attempt + time.Second},
		"the server answers with another session":     {fault.Connect, fault.OtherSession, time.Second},
		"the connection breaks before the close":      {fault.CloseSession, fault.CutBefore, time.Second},
		"the close's answer is lost":                  {fault.CloseSession, fault.DropReply, time.Second},
		"the close does not arrive":                   {fault.CloseSession, fault.HoldRequest, attempt + time.Second},
		"the close is not answered":                   {fault.CloseSession, fault.HoldReply, time.Second},
		"nothing is wrong, but everything takes time": {fault.CloseSession, fault.DelayReply, time.Second},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			g := newAbandonedSession(t, srv)
			rule := fault.Rule{Session: g.id, Op: tc.op, Action: tc.action}
			if tc.action == fault.DelayReply {
				rule.Delay = attempt / 2
			}
			met := g.proxy.Rules().Add(rule) // what the client sent earlier it does not meet
			g.heal()
			g.existsForMargin(t, tc.within)
			await(t, met.Hit(), "the fault")
		})
	}
	// It may take the session from the connection that is to close it.
	runVirtually(t, "a handshake that was held up is late", func(t *testing.T, srv *zkserver.Server) {
		g := newAbandonedSession(t, srv)
		g.gate.open()
		g.proxy.Heal()
		g.existsForMargin(t, time.Second)
	})
	runVirtually(t, "the dial fails", func(t *testing.T, srv *zkserver.Server) {
		g := newAbandonedSession(t, srv)
		g.refuse.Store(1) // the client's own dial is under way already
		g.heal()
		g.existsForMargin(t, time.Second)
		wantEqual(t, "dials", g.dials.Load(), 2)
	})
}

// An attempt renews the session, for the least timeout that the server allows: when
// all fail, the session still ends, and the attempts do.
func TestAttemptsToCloseASessionThatAllFailEnd(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.DebugLevel)
		g := newAbandonedSession(t, srv, framework.WithLogger(zap.New(core)))
		cut := g.proxy.Rules().Add(fault.Rule{Session: g.id, Op: fault.CloseSession, Action: fault.CutBefore, Times: fault.Forever})
		g.heal()
		g.proxy.ResetRequests()
		const limit = abandonTimeout + leaseMargin
		g.existsForMargin(t, limit+2*time.Second+2*zkserver.DefaultTick)
		wantBetween(t, "attempts", cut.Hits(), 3, 30)
		n := g.dials.Load()
		<-time.After(time.Minute)
		wantEqual(t, "dials since", g.dials.Load()-n, 0)
		g.slowDown(t)
		lines := logs.FilterMessage("cannot close the session that was given up")
		if warned := lines.FilterLevelExact(zap.WarnLevel).Len(); lines.Len() < 3 || warned != 1 {
			t.Errorf("%d lines in the log, %d of them warnings, want one per attempt and a warning for the last", lines.Len(), warned)
		}
		for _, line := range logs.All() {
			text := fmt.Sprint(line.Message, line.ContextMap())
			for _, shown := range []string{string(g.secret), fmt.Sprint(g.secret), hex.EncodeToString(g.secret)} {
				if strings.Contains(text, shown) {
					t.Errorf("the log has the session's password: %s", text)
				}
			}
		}
	})
}

// slowDown fails the test unless the attempts to close the session came at growing intervals, of which a half is drawn.
func (g *abandonedSession) slowDown(t *testing.T) {
	t.Helper()
	var attempts []time.Time
	for _, rq := range g.proxy.Requests() {
		if rq.Op == fault.Connect && rq.Session == g.id {
			attempts = append(attempts, rq.At)
		}
	}
	if len(attempts) < 5 {
		t.Fatalf("%d attempts", len(attempts))
	}
	most := 50 * time.Millisecond
	for i := range attempts[1:] {
		wantBetween(t, "a pause", attempts[i+1].Sub(attempts[i]), most/2, most)
		most = min(2*most, 2*time.Second)
	}
}

// Once the server has expired the session, or says so, there is nothing to close.
func TestASessionThatHasExpiredIsAskedForOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		g := newAbandonedSession(t, srv)
		g.ends(t, abandonTimeout)
		g.proxy.ResetRequests()
		g.heal()
		<-time.After(time.Minute)
		handshakes, closes := 0, 0
		for _, rq := range g.proxy.Requests() {
			if rq.Session == g.id && rq.Op == fault.Connect {
				handshakes++
			}
			if rq.Op == fault.CloseSession {
				closes++
			}
		}
		if handshakes != 1 || closes != 0 {
			t.Errorf("%d handshakes and %d closes, want one handshake", handshakes, closes)
		}
	})
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		proxy := newProxy(t, srv)
		c := connect(t, srv.Addr(), framework.WithDialer(proxy.Dial))
		h := mustHold(t, c)
		must.OK(t, srv.Expire(c.Session().ID))
		await(t, h.Lost(), "loss")
		proxy.ResetRequests()
		must.OK(t, c.AwaitConnected(t.Context()))
		<-time.After(time.Minute)
		for _, rq := range proxy.Requests() {
			if rq.Op == fault.Connect && rq.Session != 0 || rq.Op == fault.CloseSession {
				t.Errorf("%v of session %#x, although the server had said that it expired", rq.Op, rq.Session)
			}
		}
	})
}

// closesInTime closes the client, and wants the error, which says how its session has ended.
func closesInTime(t *testing.T, c *framework.Client, want error) {
	t.Helper()
	const limit = time.Second + 100*time.Millisecond
	start := time.Now()
	wantErr(t, "Close", c.Close(), want)
	wantWithin(t, start, limit)
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
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			g := newAbandonedSession(t, srv)
			tc.rule.Session = g.id
			g.proxy.Rules().Add(tc.rule)
			g.heal()
			must.OK(t, g.client.AwaitConnected(t.Context()))
			<-time.After(leaseMargin + time.Millisecond) // in virtual time: as far as it gets by itself
			if !g.exists() {
				t.Fatal("the session has ended before Close")
			}
			closesInTime(t, g.client, nil)
			if g.exists() == tc.want {
				t.Errorf("when Close has returned the session has ended: %v, want %v", !g.exists(), tc.want)
			}
		})
	}
}

// A caller that closes the client needs no lease margin any more, nor the client's own connection.
func TestClose_ends_the_lease_margin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ healed, connected bool }{
		"with a connection": {true, true}, "at once": {true, false}, "without a server": {false, false},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			g := newAbandonedSession(t, srv)
			if tc.healed {
				g.heal()
			}
			if tc.connected {
				must.OK(t, g.client.AwaitConnected(t.Context()))
			}
			if !g.exists() {
				t.Fatal("the session has ended before Close")
			}
			closesInTime(t, g.client, nil)
			if tc.healed && g.exists() {
				t.Error("Close has returned, and the session has not ended")
			}
		})
	}
}

// What waits for a reply when its session ends by the client's clock, while replies arrive all the time,
// goes on at once. It does not wait until the connection is closed.
func TestWhatWaitsInAnAbandonedSessionGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, srv.Addr(), framework.WithSessionTimeout(span), framework.WithRetry(retry.Never()), (&link{down: mega}).over(t, srv))
		mustCreate(t, c, "/d", string(make([]byte, 100<<10)))
		h := mustHold(t, c)
		sleep(span)
		srv.Rules().Add(throttled(fault.Multi)) // heartbeats
		var wg sync.WaitGroup
		var lastEnd atomic.Int64
		for range 400 {
			wg.Go(func() {
				_, _, _ = c.Get(t.Context(), "/d") // when it ends is the point
				lastEnd.Store(time.Now().UnixNano())
			})
		}
		await(t, h.Lost(), "the loss")
		lostAt := time.Now()
		wantErr(t, "the loss", h.Err(), framework.ErrSessionDeadline)
		wg.Wait()
		if late := time.Unix(0, lastEnd.Load()).Sub(lostAt); late < 0 || late > 10*time.Millisecond {
			t.Errorf("the last read ended %v after its session", late)
		}
	})
}
