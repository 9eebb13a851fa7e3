package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestNames_are_resolved_at_each_connection(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		z := newZone(t, srv, "", "zk.test")
		first, second := z.proxies["zk.test"], newProxy(t, srv)
		c := connect(t, "unknown.test,zk.test,gone.test:2182", framework.WithDialer(z.dial))
		id := c.Session().ID
		z.proxies["zk.test"] = second
		disconnect(first)
		sleep(time.Second)
		must.OK(t, c.AwaitConnected(t.Context()))
		if got := second.Sessions(); len(got) != 1 || got[0].ID != id {
			t.Errorf("sessions at the new address: %v, want %#x", got, id)
		}
	})
}

// Servers are tried in a random order, each once in a round: by their names, or by the addresses of one name.
func TestServersAreTriedInARandomOrder(t *testing.T) {
	t.Parallel()
	servers := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	for name, by := range map[string]string{"names": strings.Join(servers, ","), "addresses": "zk.test"} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			orders := map[string]bool{}
			for range 40 {
				z := newZone(t, srv, "")
				z.names["zk.test"] = servers
				opts := z.options()
				if by != "zk.test" {
					opts = opts[1:] // without a resolver
				}
				c := newClient(t, by, opts...)
				sleep(time.Second)
				round := z.dialled[:3]
				orders[strings.Join(round, " ")] = true
				slices.Sort(round)
				wantList(t, "first round", round, servers)
				c.Close()
			}
			if len(orders) < 3 {
				t.Errorf("in 40 clients only the orders %v", orders)
			}
		})
	}
}

func TestSetServersMovesTheSessionToOtherServers(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c := connect(t, "a.test,b.test/moved", framework.WithDialer(srv.Dial), framework.WithStateListener(seen.add))
		id := c.Session().ID
		if got := c.Server(); !slices.Contains(c.Servers(), got) {
			t.Errorf("connected to %q, want one of %q", got, c.Servers())
		}
		for _, bad := range []string{"", "d.test", "d.test/other", "host:0/moved"} {
			if err := c.SetServers(bad); err == nil {
				t.Errorf("%q was accepted", bad)
			}
		}
		must.OK(t, c.SetServers("b.test,c.test,a.test/moved")) // the present one is among them
		sleep(time.Second)
		check(t, c.Sync(t.Context(), "/"))
		seen.await(t, connecting, connected)
		must.OK(t, c.SetServers("d.test,e.test/moved"))
		sleep(time.Second)
		seen.await(t, connecting, connected, suspended, connected)
		if sessions := srv.Sessions(); c.Session().ID != id || len(sessions) != 1 || sessions[0].ID != id {
			t.Errorf("session %#x, at the servers %v, want %#x", c.Session().ID, sessions, id)
		}
		wantList(t, "servers", c.Servers(), []string{"d.test:2181", "e.test:2181"})
		if got := c.Server(); !slices.Contains(c.Servers(), got) {
			t.Errorf("connected to %q, want one of %q", got, c.Servers())
		}
		srv.Refuse()
		srv.Cut()
		seen.await(t, connecting, connected, suspended, connected, suspended)
		if got := c.Server(); got != "" {
			t.Errorf("connected to %q although no server serves", got)
		}
	})
}

// An ensemble that was wiped knows neither the session nor what the client has
// seen: its servers drop the connection without a word.
func TestSession_on_a_wiped_ensemble(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		z := newZone(t, srv, "", "zk.test")
		c := connect(t, "zk.test", framework.WithDialer(z.dial), framework.WithStateListener(seen.add))
		mustCreate(t, c, "/a", "")
		z.proxies["zk.test"] = newProxy(t, zkserver.Run(t))
		framework.CloseConn(c)
		seen.await(t, connecting, connected, suspended, lost, connected)
		wantExists(t, c, "/a", false)
	})
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

// A zone is a name server and the network behind it, with a proxy to one server at
// each address.
type zone struct {
	mu      sync.Mutex // guards following
	names   map[string][]string
	proxies map[string]*zkproxy.Proxy
	asked   []string
	dialled []string
}

// newZone returns a zone in which name resolves to the addresses.
func newZone(t *testing.T, srv *zkserver.Server, name string, addrs ...string) *zone {
	t.Helper()
	z := &zone{names: map[string][]string{name: addrs}, proxies: map[string]*zkproxy.Proxy{}}
	for _, addr := range addrs {
		z.proxies[addr] = newProxy(t, srv)
	}
	return z
}

func (z *zone) resolve(_ context.Context, name string) ([]string, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked = append(z.asked, name)
	if len(z.names[name]) == 0 {
		return nil, fmt.Errorf("no such host %s", name)
	}
	return z.names[name], nil
}

func (z *zone) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	z.mu.Lock()
	z.dialled = append(z.dialled, host)
	proxy := z.proxies[host]
	z.mu.Unlock()
	if proxy == nil {
		return nil, fmt.Errorf("no route to %s", host)
	}
	return proxy.Dial(ctx, network, addr)
}

func (z *zone) options() []framework.Option {
	return []framework.Option{framework.WithResolver(z.resolve), framework.WithDialer(z.dial), framework.WithSessionTimeout(span)}
}

// count returns how often names were asked for and addresses dialled.
func (z *zone) count() (asked, dialled int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.asked), len(z.dialled)
}

func TestANameWithSeveralAddresses(t *testing.T) {
	t.Parallel()
	const a, b, c = "192.0.2.1", "192.0.2.2", "192.0.2.3"
	runVirtually(t, "fails over to another address when a server is frozen", func(t *testing.T, srv *zkserver.Server) {
		z := newZone(t, srv, "zk.test", a, b, c)
		z.proxies[a].Blackhole(zkproxy.Both)
		z.proxies[b].Blackhole(zkproxy.Both)
		start := time.Now()
		connect(t, "zk.test", append(z.options(), framework.WithConnectTimeout(time.Second))...)
		wantWithin(t, start, 2*time.Second+100*time.Millisecond)
	})
	runVirtually(t, "is resolved again when all addresses have failed", func(t *testing.T, srv *zkserver.Server) {
		z := newZone(t, srv, "zk.test", a, b)
		client := connect(t, "zk.test", z.options()...)
		sleep(time.Second)
		asked, dialled := z.count()
		z.proxies[c] = newProxy(t, srv)
		for _, addr := range []string{a, b} {
			z.proxies[addr].Refuse()
			z.proxies[addr].Cut()
		}
		sleep(10 * time.Millisecond)
		if nowAsked, nowDialled := z.count(); nowAsked-asked != 1 || nowDialled-dialled != 2 {
			t.Errorf("asked %d times for %d attempts, want once for both addresses", nowAsked-asked, nowDialled-dialled)
		}
		z.mu.Lock()
		z.names["zk.test"] = []string{c}
		z.mu.Unlock()
		must.Get2(client.Children(t.Context(), "/"))(t)
	})
	runVirtually(t, "that does not resolve leaves the others in peace", func(t *testing.T, srv *zkserver.Server) {
		z := newZone(t, srv, "zk.test", a)
		connect(t, "gone.test,zk.test,nowhere.test", z.options()...)
	})
}

// wantAddresses fails the test if the dialer got a name: it gets addresses if there is a resolver.
func (z *zone) wantAddresses(t *testing.T) {
	t.Helper()
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, host := range z.dialled {
		if net.ParseIP(host) == nil {
			t.Errorf("the dialer got the name %s", host)
			return
		}
	}
}

// Close has a second to find a server that ends the session. Two of three are well, under one name
// or each under its own, and so it finds one whichever order it takes.
func TestClose_with_a_server_that_does_not_answer(t *testing.T) {
	t.Parallel()
	const a, b, c = "192.0.2.1", "192.0.2.2", "192.0.2.3"
	for _, servers := range []string{"zk.test", "zk.test,zk.test:2182,zk.test:2183"} {
		t.Run(servers, func(t *testing.T) {
			for range 20 {
				virtually(t, func(t *testing.T, srv *zkserver.Server) {
					z := newZone(t, srv, "zk.test", a, b, c)
					client := connect(t, servers, z.options()...)
					for _, proxy := range z.proxies {
						disconnect(proxy)
					}
					sleep(time.Second)
					for _, proxy := range z.proxies {
						proxy.Heal()
					}
					z.proxies[a].Blackhole(zkproxy.Both)
					if client.State() != suspended {
						t.Fatalf("state %v", client.State())
					}
					closesInTime(t, client, nil)
					wantEqual(t, "sessions after Close", len(srv.Sessions()), 0)
					z.wantAddresses(t)
				})
			}
		})
	}
}

// The second attempt to close an abandoned session goes to any server.
func TestAbandonedSession_with_a_resolver(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const a = "192.0.2.1"
		z := newZone(t, srv, "zk.test", a)
		client := connect(t, "zk.test", z.options()...)
		mustHold(t, client)
		z.proxies[a].Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
		z.proxies[a].Rules().Add(fault.Rule{Op: fault.CloseSession, Action: fault.CutBefore, Times: 3})
		former := client.Session().ID
		z.proxies[a].Cut()
		sleep(span)
		for _, s := range srv.Sessions() {
			if s.ID == former {
				t.Error("the abandoned session exists")
			}
		}
		z.wantAddresses(t)
	})
}

func TestEnsembleTracking_with_a_resolver(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const a, b, c = "192.0.2.1", "192.0.2.2", "192.0.2.3"
		z := newZone(t, srv, "zk.test", a)
		z.names["new.test"] = []string{b, c}
		z.proxies[b], z.proxies[c] = newProxy(t, srv), newProxy(t, srv)
		z.proxies[b].Refuse() // one address of two is enough
		client := connect(t, "zk.test", z.options()...)
		config := mustCreate(t, client, "/config", "")
		framework.Track(client, config)
		mustSet(t, client, config, "server.1=new.test:2888:3888:participant;new.test:2181\nversion=100000000")
		sleep(time.Second)
		wantList(t, "servers", client.Servers(), []string{"new.test:2181"})
		must.Get2(client.Children(t.Context(), "/"))(t)
		z.wantAddresses(t)
		z.mu.Lock()
		defer z.mu.Unlock()
		if !slices.Contains(z.dialled, c) {
			t.Errorf("dialled %v: it has not moved", z.dialled)
		}
	})
}

func TestSetServersIsObeyed(t *testing.T) {
	t.Parallel()
	ends := func(ctx context.Context) context.Context { return ctx }
	for name, tc := range map[string]struct {
		old    func(ctx context.Context, g *gate) error // what a dial to the old server does first
		within func(context.Context) context.Context    // the dial's context
		pause  bool                                     // the client pauses between dials when it gets other servers
		reply  time.Duration                            // how long a handshake takes
	}{
		"during a dial": {old: func(ctx context.Context, g *gate) error { return g.pass(ctx) }, within: ends},
		"by a dial that does not obey its context": {
			old: func(_ context.Context, g *gate) error { return g.pass(context.Background()) }, within: context.WithoutCancel,
		},
		"during a pause": {old: func(_ context.Context, g *gate) error {
			if g.isShut() {
				return errors.New("refused")
			}
			return nil
		}, within: ends, pause: true},
		"during a handshake": {old: func(context.Context, *gate) error { return nil }, within: ends, reply: 500 * time.Millisecond},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var g gate
			g.shut()
			proxy := newProxy(t, srv)
			if tc.reply > 0 {
				proxy.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.DelayReply, Delay: tc.reply})
			}
			var mu sync.Mutex
			var dialled []string
			c := newClient(t, "old.test", framework.WithSessionTimeout(span), framework.WithDialer(
				func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
					if strings.HasPrefix(addr, "old.test") {
						err = tc.old(ctx, &g)
					}
					if err == nil {
						conn, err = proxy.Dial(tc.within(ctx), network, addr)
					}
					mu.Lock()
					defer mu.Unlock()
					dialled = append(dialled, addr)
					return conn, err
				}))
			sleep(100 * time.Millisecond)
			if tc.pause {
				g.open() // the old server is back, and must not be gone to
			}
			must.OK(t, c.SetServers("new.test"))
			synctest.Wait()
			if !tc.pause {
				g.open()
			}
			sleep(5 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			if c.State() != framework.Connected || dialled[len(dialled)-1] != "new.test:2181" {
				t.Errorf("%v, having dialled %v: want it at the new server", c.State(), dialled)
			}
		})
	}
}

func TestWithServers(t *testing.T) {
	t.Parallel()
	type answer struct {
		servers []string
		err     error
	}
	for name, tc := range map[string]struct {
		connect string
		answers []answer // the last one again and again
		want    []string // that the client goes to in the end
	}{
		"names the servers":                           {"", []answer{{servers: []string{"a.test"}}}, []string{"a.test:2181"}},
		"leaves the chroot to the connect string":     {"/chroot", []answer{{servers: []string{"a.test:1"}}}, []string{"a.test:1"}},
		"is asked again when it failed":               {"", []answer{{err: errors.New("away")}, {servers: []string{"a.test"}}}, []string{"a.test:2181"}},
		"is asked again when it named none":           {"", []answer{{}, {servers: []string{"a.test"}}}, []string{"a.test:2181"}},
		"is asked again when a name was no server":    {"", []answer{{servers: []string{"a.test:x"}}, {servers: []string{"a.test"}}}, []string{"a.test:2181"}},
		"is asked again when its servers are gone":    {"", []answer{{servers: []string{"gone.test"}}, {servers: []string{"a.test"}}}, []string{"a.test:2181"}},
		"gives way to the connect string if it fails": {"a.test", []answer{{err: errors.New("away")}}, []string{"a.test:2181"}},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var mu sync.Mutex
			calls := 0
			c := connect(t, tc.connect, framework.WithServers(func(ctx context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				if _, ok := ctx.Deadline(); !ok {
					t.Error("a context without a deadline")
				}
				next := tc.answers[min(calls, len(tc.answers)-1)]
				calls++
				return next.servers, next.err
			}), framework.WithDialer(newZone(t, srv, "", "a.test").dial))
			wantList(t, "servers", c.Servers(), tc.want)
			if want := strings.TrimPrefix(tc.connect, "a.test"); want != "" && c.AbsolutePath("/x") != want+"/x" {
				t.Errorf("/x lies at %s", c.AbsolutePath("/x"))
			}
			sleep(time.Minute)
			if calls > len(tc.answers) {
				t.Errorf("asked %d times, want %d: a client that is connected does not ask", calls, len(tc.answers))
			}
		})
	}
}

func TestServerSource_that_fails(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, _ *zkserver.Server) {
		calls := 0
		c := newClient(t, "", framework.WithServers(func(context.Context) ([]string, error) {
			calls++
			return nil, errors.New("the registry is away")
		}), framework.WithDialer(refuse))
		err := c.AwaitConnected(within(t, 59*time.Second))
		wantErr(t, "AwaitConnected", err, framework.ErrNotConnected)
		wantText(t, err, "the registry is away")
		if calls > 300 {
			t.Errorf("asked %d times within a minute", calls)
		}
	})
	if _, err := framework.NewClient("//", framework.WithServers(func(context.Context) ([]string, error) { return nil, nil })); err == nil {
		t.Error("a faulty chroot was accepted")
	}
}
