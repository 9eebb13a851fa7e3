package framework_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// A tracked is a client that follows a configuration, in a network where some hosts
// are down.
type tracked struct {
	*framework.Client
	srv    *zkserver.Server
	config string
	seen   trail

	mu      sync.Mutex // guards following
	down    map[string]bool
	dialled []string
}

func newTracked(t *testing.T, srv *zkserver.Server, connectString string, opts ...framework.Option) *tracked {
	t.Helper()
	tr := &tracked{srv: srv, down: map[string]bool{}}
	tr.Client = connect(t, connectString, append(opts, framework.WithDialer(tr.dial), framework.WithStateListener(tr.seen.add),
		framework.WithSessionTimeout(span))...)
	tr.config = mustCreate(t, tr.Client, "/config", "")
	framework.Track(tr.Client, tr.config)
	sleep(time.Second)
	return tr
}

func (tr *tracked) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.dialled = append(tr.dialled, addr)
	if tr.down[host] {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return tr.srv.Dial(ctx, network, addr)
}

func (tr *tracked) set(down bool, hosts ...string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, host := range hosts {
		tr.down[host] = down
	}
}

// lastDialled returns what was dialled last.
func (tr *tracked) lastDialled() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.dialled[len(tr.dialled)-1]
}

// says writes a configuration, and waits until the client has read it.
func (tr *tracked) says(t *testing.T, configuration string) {
	t.Helper()
	must.Get(tr.Set(t.Context(), tr.config, []byte(configuration), framework.AnyVersion))(t)
	sleep(time.Second)
}

func TestEnsembleTracking(t *testing.T) {
	t.Parallel()
	t.Run("leaves a server that was removed", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			tr := newTracked(t, srv, "a.test")
			tr.says(t, "server.1=b.test:1:2;2181\nversion=1")
			tr.seen.await(t, connecting, connected, suspended, connected)
			if got := tr.lastDialled(); got != "b.test:2181" {
				t.Errorf("went to %s", got)
			}
		})
	})
	t.Run("stays at a server that remains", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			tr := newTracked(t, srv, "a.test")
			tr.says(t, "server.1=b.test:1:2;2181\nserver.2=a.test:1:2;2181\nversion=1")
			tr.seen.await(t, connecting, connected)
			if got := tr.Servers(); !slices.Equal(got, []string{"a.test:2181", "b.test:2181"}) {
				t.Errorf("servers %v", got)
			}
		})
	})
	t.Run("does not give a connection that works for servers that cannot be reached", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			tr := newTracked(t, srv, "a.test")
			tr.set(true, "b.test")
			tr.says(t, "server.1=b.test:1:2;2181\nversion=1")
			sleep(time.Minute)
			tr.seen.await(t, connecting, connected)
			tr.set(false, "b.test")
			sleep(time.Minute)
			tr.seen.await(t, connecting, connected, suspended, connected)
			if got := tr.lastDialled(); got != "b.test:2181" {
				t.Errorf("went to %s when it could be reached", got)
			}
		})
	})
	t.Run("falls back on the connect string", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			tr := newTracked(t, srv, "a.test")
			tr.says(t, "server.1=b.test:1:2;2181\nversion=1")
			tr.set(true, "b.test")
			srv.Cut()
			sleep(time.Second)
			must.Get2(tr.Children(t.Context(), "/"))(t)
			if got := tr.Servers(); !slices.Equal(got, []string{"b.test:2181"}) {
				t.Errorf("servers %v", got)
			}
		})
	})
	t.Run("never goes back to an older configuration", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			tr := newTracked(t, srv, "a.test")
			for _, configuration := range []string{
				"server.1=b.test:1:2;2181\nversion=100000002",
				"server.1=c.test:1:2;2181\nversion=ffff",
				"server.1=c.test:1:2;2181",
			} {
				tr.says(t, configuration)
				if got := tr.Servers(); !slices.Equal(got, []string{"b.test:2181"}) {
					t.Errorf("servers %v after %q", got, configuration)
				}
			}
			tr.says(t, "server.1=c.test:1:2;2181\nversion=100000003")
			if got := tr.Servers(); !slices.Equal(got, []string{"c.test:2181"}) {
				t.Errorf("servers %v", got)
			}
		})
	})
}

// TestTracking_of_a_configuration_without_addresses follows one configuration after another.
func TestTracking_of_a_configuration_without_addresses(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		first, second := srv.Frontend(0).Addr(), srv.Frontend(1).Addr()
		c := connect(t, first, framework.WithDialer(srv.Dial))
		config := mustCreate(t, c, "/config", "")
		framework.Track(c, config)
		host, port := must.Get2(net.SplitHostPort(second))(t)
		for _, tc := range []struct{ configuration, want string }{
			{"server.1=127.0.0.1:1:2:participant\nversion=1", first},
			{"server.1=" + host + ":1:2:participant;0.0.0.0:" + port + "\nversion=2", second},
			{"server.1=127.0.0.1:1:2:participant\nversion=3", second},
		} {
			must.Get(c.Set(t.Context(), config, []byte(tc.configuration), framework.AnyVersion))(t)
			synctest.Wait()
			if got := c.Servers(); !slices.Equal(got, []string{tc.want}) {
				t.Errorf("servers %v after %q, want %s", got, tc.configuration, tc.want)
			}
		}
	}, zkserver.WithFrontends(2))
}

// TestAChrootSurvivesANewConfiguration follows a configuration, which never names a chroot.
func TestAChrootSurvivesANewConfiguration(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		first, second := srv.Frontend(0).Addr(), srv.Frontend(1).Addr()
		outside := connect(t, first, framework.WithDialer(srv.Dial))
		mustCreate(t, outside, "/app", "")
		c := connect(t, first+"/app", framework.WithDialer(srv.Dial))
		config := mustCreate(t, outside, "/config", "server.1="+second[:len(second)-len(":2181")]+":1:2;2181\nversion=1")
		framework.Track(c, config)
		synctest.Wait()
		if got := c.Servers(); !slices.Equal(got, []string{second}) {
			t.Fatalf("servers %v, want %s", got, second)
		}
		mustCreate(t, c, "/node", "")
		if _, ok, err := outside.Exists(t.Context(), "/app/node"); err != nil || !ok {
			t.Errorf("/app/node exists: %v, %v", ok, err)
		}
	}, zkserver.WithFrontends(2))
}
