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
const mourned = 6 * time.Second

// respite is the lease margin of that timeout.
const respite = mourned / 3

// An abandonedSession is a client that has abandoned its session by its own clock, while the
// server still has the session. Its network lets nothing through, and holds handshakes that would
// resume it.
type grave struct {
	srv    *zkserver.Server
	proxy  *zkproxy.Proxy
	gate   gate // for the client's dials, shut
	client *framework.Client
	ghost  int64        // the session
	secret []byte       // its password
	dials  atomic.Int64 // of the client, since the loss
	refuse atomic.Int64 // of these dials, the one that fails
}

func digGrave(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *grave {
	t.Helper()
	g := &grave{srv: srv}
	g.proxy = zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
	opts = append(opts, framework.WithDialer(g.dial), framework.WithSessionTimeout(mourned))
	g.client = connect(t, srv.Addr(), opts...)
	g.ghost, g.secret = framework.SessionSecret(g.client)
	h := mustHold(t, g.client)
	mustCreate(t, g.client, "/locks/node", "", framework.Ephemeral())
	g.proxy.Blackhole(zkproxy.Both)
	<-time.After(mourned * 3 / 4)
	g.gate.shut()
	await(t, h.Lost(), "loss")
	wantErr(t, "cause of the loss", h.Err(), framework.ErrSessionDeadline)
	synctest.Wait()
	if !g.haunts() {
		t.Fatal("the server has expired the session already")
	}
	g.dials.Store(0)
	return g
}

// heal ends the blackhole: what it held arrives, and renews the session. Only then
// does it let the client connect.
func (g *grave) heal() {
	g.proxy.Heal()
	synctest.Wait()
	g.gate.open()
}

func (g *grave) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if n := g.dials.Add(1); n == g.refuse.Load() {
		return nil, syscall.ECONNREFUSED
	}
	if err := g.gate.pass(ctx); err != nil {
		return nil, err
	}
	return g.proxy.Dial(ctx, network, addr)
}

// haunts reports whether the server has the session.
func (g *grave) haunts() bool {
	return slices.ContainsFunc(g.srv.Sessions(), func(s zkserver.SessionInfo) bool { return s.ID == g.ghost })
}

// rests fails the test unless the session ends at the server within the limit, after the
// lease margin.
func (g *grave) rests(t *testing.T, within time.Duration) {
	t.Helper()
	start := time.Now()
	<-time.After(respite - time.Millisecond)
	g.ends(t, within+time.Millisecond)
	if took := time.Since(start); took < respite {
		t.Errorf("the session ended after %v, before the lease margin of %v", took, respite)
	}
}

// ends fails the test unless the session ends at the server within the limit.
func (g *grave) ends(t *testing.T, within time.Duration) {
	t.Helper()
	start := time.Now()
	zktest.Eventually(t, patience, "the session has ended at the server", func() bool { return !g.haunts() })
	if took := time.Since(start); took > within {
		t.Errorf("the session ended after %v, want at most %v", took, within)
	}
	if slices.Contains(g.srv.Paths(), "/locks/node") {
		t.Error("its ephemeral znode stands")
	}
}
