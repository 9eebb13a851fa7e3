package framework_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A client that leaves a server by its own decision makes no outcome unknown.
func TestLeavingAServer(t *testing.T) {
	t.Parallel()
	runVirtually(t, "awaits a reply that is on its way", func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, "a.test", framework.WithDialer(srv.Dial), framework.WithSessionTimeout(span))
		path := mustCreate(t, c, "/a", "")
		slow(srv, fault.SetData)
		var wg sync.WaitGroup
		wg.Go(func() {
			check(t, last(c.Set(t.Context(), path, nil, 0)))
		})
		synctest.Wait()
		must.OK(t, c.SetServers("b.test"))
		wg.Wait()
		wantServer(t, c, "b.test:2181")
	})
	runVirtually(t, "that the configuration has removed", func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, "a.test", framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			sleep(10 * time.Millisecond) // during which the next request is sent
			return srv.Dial(ctx, network, addr)
		}), framework.WithSessionTimeout(span))
		config := mustCreate(t, c, "/config", "")
		framework.Track(c, config)
		must.Get(c.Set(t.Context(), config, []byte("server.1=b.test:1:2;2181\nversion=1"), 0))(t)
		synctest.Wait()
		slow(srv, fault.SetData)
		if _, err := c.Set(t.Context(), config, []byte("server.1=b.test:1:2;2181\nversion=2"), 1); err != nil {
			t.Error(err)
		}
		wantServer(t, c, "b.test:2181")
	})
	runVirtually(t, "waits for a limited time", func(t *testing.T, srv *zkserver.Server) {
		c := connect(t, "a.test", framework.WithDialer(srv.Dial), framework.WithSessionTimeout(span))
		path := mustCreate(t, c, "/a", "")
		held := srv.Rules().Add(fault.Rule{Op: fault.SetData, Action: fault.HoldReply})
		defer held.Release()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Set(ctx, path, nil, 0); !errors.Is(err, framework.ErrUnknownOutcome) && err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		begun := time.Now()
		must.OK(t, c.SetServers("b.test"))
		synctest.Wait()
		wantEqual(t, "state while it leaves: a request would follow the others", c.State(), suspended)
		must.OK(t, c.AwaitConnected(ctx))
		wantWithin(t, begun, span/8+100*time.Millisecond)
		wg.Wait()
		wantServer(t, c, "b.test:2181")
	})
}

// slow delays the next reply to a request of that kind.
func slow(srv *zkserver.Server, op fault.Op) {
	srv.Rules().Add(fault.Rule{Op: op, Action: fault.DelayReply, Delay: span / 20})
}

// wantServer fails the test unless the client is connected, and goes only to the server.
func wantServer(t *testing.T, c *framework.Client, want string) {
	t.Helper()
	must.OK(t, c.AwaitConnected(t.Context()))
	wantList(t, "servers", c.Servers(), []string{want})
}
