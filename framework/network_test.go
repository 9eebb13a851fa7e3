package framework_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// A nameServer is a dialer that resolves names by a table.
type nameServer struct {
	mu    sync.Mutex
	table map[string]string // name to address; none for a name that does not resolve
	asked []string
}

func (n *nameServer) set(name, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.table[name] = addr
}

func (n *nameServer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.asked = append(n.asked, addr)
	target, ok := n.table[addr]
	n.mu.Unlock()
	if !ok {
		return nil, errors.New("no such host " + addr)
	}
	return new(net.Dialer).DialContext(ctx, network, target)
}

func (n *nameServer) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

func TestNames_are_resolved_at_each_connection(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	first, second := zkproxy.Run(t, server.Addr()), zkproxy.Run(t, server.Addr())
	names := nameServer{table: map[string]string{"zk.test:2181": first.Addr()}}
	var seen trail
	c := connect(t, "unknown.test,zk.test,gone.test:2182", framework.WithDialer(names.dial), framework.WithStateListener(seen.add))
	id := c.Session().ID
	names.set("zk.test:2181", second.Addr())
	first.Refuse()
	first.Cut()
	seen.await(t, connecting, connected, suspended, connected)
	if got := second.Sessions(); len(got) != 1 || got[0].ID != id {
		t.Errorf("sessions at the new address: %v, want %#x", got, id)
	}
	if got := names.names(); !slices.Contains(got, "zk.test:2181") {
		t.Errorf("the dialer was asked for %v, want names", got)
	}
}

func TestServersAreTriedInARandomOrder(t *testing.T) {
	t.Parallel()
	orders := map[string]bool{}
	for range 40 {
		names := nameServer{}
		c := newClient(t, "a,b,c", framework.WithDialer(names.dial))
		zktest.Eventually(t, patience, "a round", func() bool { return len(names.names()) >= 3 })
		round := names.names()[:3]
		orders[strings.Join(round, " ")] = true
		slices.Sort(round)
		if !slices.Equal(round, []string{"a:2181", "b:2181", "c:2181"}) {
			t.Errorf("first round %v, want each server once", round)
		}
		c.Close()
	}
	if len(orders) < 3 {
		t.Errorf("in 40 clients only the orders %v", orders)
	}
}

func TestSetServersMovesTheSessionToOtherServers(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	first, second := zkproxy.Run(t, server.Addr()), zkproxy.Run(t, server.Addr())
	var seen trail
	c := connect(t, first.Addr()+"/moved", framework.WithStateListener(seen.add))
	seen.await(t, connecting, connected)
	id := c.Session().ID
	for _, bad := range []string{"", second.Addr(), second.Addr() + "/other", "host:0/moved"} {
		if err := c.SetServers(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	must.OK(t, c.SetServers(first.Addr()+","+second.Addr()+"/moved"))
	if err := c.Sync(t.Context(), "/"); err != nil || len(seen.list()) != 2 {
		t.Errorf("a server more cost the connection: %v, %v", seen.list(), err)
	}
	must.OK(t, c.SetServers(second.Addr()+"/moved"))
	seen.await(t, connecting, connected, suspended, connected)
	if got := second.Sessions(); len(got) != 1 || got[0].ID != id {
		t.Errorf("sessions at the new server: %v, want %#x", got, id)
	}
	if got := c.Servers(); !slices.Equal(got, []string{second.Addr()}) {
		t.Errorf("servers %v", got)
	}
}

func TestSetServersEndsTheWaitForServersThatAreGone(t *testing.T) {
	t.Parallel()
	c := newClient(t, freeport.Addr(t))
	if err := c.AwaitConnected(within(t, 300*time.Millisecond)); err == nil {
		t.Fatal("connected where no server listens")
	} else if !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v does not say why", err)
	}
	must.OK(t, c.SetServers(zktest.Shared(t).Addr()))
	if err := c.AwaitConnected(within(t, patience)); err != nil {
		t.Error(err)
	}
}

func TestEnsembleTrackingFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	other := zkproxy.Run(t, server.Addr())
	_, port, _ := net.SplitHostPort(other.Addr())
	c := connect(t, server.Addr())
	config := mustCreate(t, c, fresh(t)+"/config", "")
	framework.Track(c, config)
	for _, configuration := range []string{
		"server.1=127.0.0.1:1:2:participant;0.0.0.0:" + port + "\nversion=1",
		"server.1=127.0.0.1:1:2:participant\nversion=2", // names no client's address
	} {
		must.Get(c.Set(t.Context(), config, []byte(configuration), -1))(t)
		zktest.Eventually(t, patience, "the client goes to the server", func() bool {
			return slices.Equal(c.Servers(), []string{other.Addr()})
		})
	}
	tracking := connect(t, server.Addr(), framework.WithEnsembleTracking()) // a standalone server has nothing to follow
	if err := tracking.Sync(t.Context(), "/"); err != nil || !slices.Equal(tracking.Servers(), []string{server.Addr()}) {
		t.Errorf("servers %v, %v", tracking.Servers(), err)
	}
}

// An ensemble that was wiped knows neither the session nor what the client has
// seen: its servers drop the connection without a word.
func TestSession_on_a_wiped_ensemble(t *testing.T) {
	t.Parallel()
	wiped := zktest.Run(t)
	names := nameServer{table: map[string]string{"zk.test:2181": zktest.Shared(t).Addr()}}
	var seen trail
	c := connect(t, "zk.test", framework.WithDialer(names.dial), framework.WithStateListener(seen.add))
	node := mustCreate(t, c, fresh(t)+"/a", "")
	names.set("zk.test:2181", wiped.Addr())
	framework.CloseConn(c)
	seen.await(t, connecting, connected, suspended, lost, connected)
	if _, ok, err := c.Exists(t.Context(), node); err != nil || ok {
		t.Errorf("exists: %v, %v", ok, err)
	}
}

func TestConnection_dropped_at_once_makes_no_loop(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := connect(t, proxy.Addr(), framework.WithSessionTimeout(20*time.Second))
	proxy.ResetRequests()
	proxy.Rules().Add(fault.Rule{Op: fault.GetChildren, Action: fault.CutBefore, Times: fault.Forever})
	ctx := within(t, time.Second)
	for ctx.Err() == nil {
		_, _, err := c.Children(ctx, "/")
		if err == nil {
			t.Fatal("the request passed")
		}
	}
	if n := proxy.Count(fault.Connect); n > 20 {
		t.Errorf("%d connections within a second", n)
	}
}

// A frontDialer leads one connection after another to the next front end, whatever the client
// asks for.
type frontDialer struct {
	srv   *zkserver.Server     // immutable
	order []*zkserver.Frontend // immutable

	mu   sync.Mutex
	next int // guarded by mu
}

func (d *frontDialer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	d.mu.Lock()
	f := d.order[d.next%len(d.order)]
	d.next++
	d.mu.Unlock()
	return d.srv.Dial(ctx, network, f.Addr())
}
