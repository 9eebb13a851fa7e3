package framework_test

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// mourned is the session timeout of the tests below.
const abandonTimeout = 6 * time.Second

// respite is the lease margin of that timeout.
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
	g.proxy = zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
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

// haunts reports whether the server has the session.
func (g *abandonedSession) exists() bool {
	return slices.ContainsFunc(g.srv.Sessions(), func(s zkserver.SessionInfo) bool { return s.ID == g.id })
}

// rests fails the test unless the session ends at the server within the limit, after the
// lease margin.
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
	if took := time.Since(start); took > within {
		t.Errorf("the session ended after %v, want at most %v", took, within)
	}
	if slices.Contains(g.srv.Paths(), "/locks/node") {
		t.Error("its ephemeral znode stands")
	}
}
