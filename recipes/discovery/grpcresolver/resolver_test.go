package grpcresolver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/grpc/status"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcresolver"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

const generous = 30 * time.Second

// A zone is the payload. It is not comparable.
type zone struct{ Tags []string }

type registry = discovery.Registry[zone]

// newClient returns a client of the server.
func newClient(t *testing.T, server *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(server.Addr(), append(opts, framework.WithDialer(server.Dial),
		framework.WithSessionTimeout(4*time.Second))...))(t)
	t.Cleanup(func() { must.OK(t, c.Close()) })
	return c
}

// newRegistry returns a registry with a client of the server, in a namespace: errors have the paths in the ensemble.
func newRegistry(t *testing.T, server *zkserver.Server) *registry {
	t.Helper()
	c := newClient(t, server, framework.WithNamespace("app"))
	r := must.Get(discovery.New[zone](c, "/services"))(t)
	t.Cleanup(func() { must.OK(t, r.Close(context.WithoutCancel(t.Context()))) })
	return r
}

// register returns when the instance is registered.
func register(t *testing.T, r *registry, in discovery.Instance[zone]) *discovery.Registration[zone] {
	t.Helper()
	reg := must.Get(r.Register(in))(t)
	must.OK(t, reg.Await(t.Context()))
	return reg
}

// serve runs a gRPC server, registers it, and returns its address and how to end both.
func serve(t *testing.T, r *registry, in discovery.Instance[zone]) (addr string, stop func()) {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(listener) }) // until it is stopped
	in.Name, in.Address = "web", "127.0.0.1"
	in.Port = listener.Addr().(*net.TCPAddr).Port
	reg := register(t, r, in)
	stop = sync.OnceFunc(func() {
		if err := reg.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		s.GracefulStop()
		serving.Wait()
	})
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

func dial(t *testing.T, r *registry, target string, opts ...grpcresolver.Option) *grpc.ClientConn {
	t.Helper()
	conn := must.Get(grpc.NewClient(target,
		grpc.WithResolvers(grpcresolver.NewBuilder(r, opts...)),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { must.OK(t, conn.Close()) })
	return conn
}

// call makes a call, and returns the address of the server that answered.
func call(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, generous)
	defer cancel()
	var from peer.Peer
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&from), grpc.WaitForReady(true))
	if err != nil {
		return "", err
	}
	return from.Addr.String(), nil
}

// awaitRoundRobin waits until calls go to these servers in turn, and to no other.
func awaitRoundRobin(t *testing.T, conn *grpc.ClientConn, servers ...string) {
	t.Helper()
	slices.Sort(servers)
	zktest.Eventually(t, generous, fmt.Sprintf("calls in turn to %v", servers), func() bool {
		got := make([]string, len(servers))
		for i := range 2 * len(servers) {
			addr := must.Get(call(t.Context(), conn))(t)
			if i >= len(servers) && got[i%len(servers)] != addr {
				return false
			}
			got[i%len(servers)] = addr
		}
		slices.Sort(got)
		return slices.Equal(got, servers)
	})
}

// A real client goes round the servers as they come and go, and on when ZooKeeper is away.
func TestRoundRobinOverLiveInstances(t *testing.T) {
	server := zkserver.Run(t, zkenv.DrawVersion(t)...)
	ours, theirs := newRegistry(t, server), newRegistry(t, server)
	a, stopA := serve(t, theirs, discovery.Instance[zone]{ID: "a", Payload: zone{[]string{"x"}}})
	conn := dial(t, ours, "zk:///web")
	awaitRoundRobin(t, conn, a)
	b, stopB := serve(t, theirs, discovery.Instance[zone]{ID: "b"})
	awaitRoundRobin(t, conn, a, b)
	c, _ := serve(t, theirs, discovery.Instance[zone]{ID: "c"})
	awaitRoundRobin(t, conn, a, b, c)
	stopA()
	awaitRoundRobin(t, conn, b, c)

	must.OK(t, server.Close())
	awaitRoundRobin(t, conn, b, c)
	stopB()
	for range 10 { // without ZooKeeper, gRPC itself leaves out what does not answer
		if addr, err := call(t.Context(), conn); err != nil || addr != c {
			t.Errorf("call during the outage: %s, %v; want %s", addr, err, c)
		}
	}
}

// Without an instance, as with a mistyped name, calls fail, and say so; they succeed when there is one.
func TestNoInstances(t *testing.T) {
	r := newRegistry(t, zkserver.Run(t, zkenv.DrawVersion(t)...))
	conn := dial(t, r, "zk:///web")
	_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no instances of /app/services/web") {
		t.Errorf("call without an instance: %v, want Unavailable, and the path", err)
	}
	a, _ := serve(t, r, discovery.Instance[zone]{ID: "a"})
	awaitRoundRobin(t, conn, a)
}

func TestTargetsThatAreRefused(t *testing.T) {
	r := newRegistry(t, zkserver.Run(t, zkenv.DrawVersion(t)...))
	for target, want := range map[string]string{
		"zk://host/web": "must have no authority",
		"zk:///a/b":     "must not be empty or contain a slash",
		"zk:///":        "must not be empty or contain a slash",
	} {
		u := must.Get(url.Parse(target))(t)
		_, err := grpcresolver.NewBuilder(r).Build(resolver.Target{URL: *u}, &conn{}, resolver.BuildOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", target, err, want)
		}
	}
}

// A conn is a connection that keeps what the resolver has passed to it.
type conn struct {
	mu    sync.Mutex
	state resolver.State
	count int // of states
	err   error
}

func (c *conn) UpdateState(s resolver.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
	c.count++
	return nil
}

func (c *conn) ReportError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (*conn) NewAddress([]resolver.Address)                        { panic("deprecated") }
func (*conn) ParseServiceConfig(string) *serviceconfig.ParseResult { panic("not called") }

func (c *conn) updates() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

func (c *conn) addresses() (addrs []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.state.Addresses {
		addrs = append(addrs, a.Addr)
	}
	return addrs, c.err
}

// Instances that are disabled or have no address or port are left out, and so are those of other clients
// with numbers that are no ports; others bring their payload.
func TestEndpointsAndTheirAttributes(t *testing.T) {
	server := zkserver.Run(t, zkenv.DrawVersion(t)...)
	c := newRegistry(t, server)
	for _, in := range []discovery.Instance[zone]{
		{ID: "a", Address: "::1", Port: 80, SSLPort: 443, Payload: zone{[]string{"x"}}},
		{ID: "b", Address: "10.0.0.2"},
		{ID: "c", Port: 80},
	} {
		in.Name = "web"
		register(t, c, in)
	}
	for _, port := range []string{"-1", "65536", "70000"} {
		data := fmt.Sprintf(`{"name":"web","id":"%[1]s","address":"10.0.0.3","port":%[1]s,"sslPort":"%[1]s"}`, port)
		must.Get(newClient(t, server).Create(t.Context(), "/app/services/web/"+port, []byte(data)))(t)
	}
	for want, opts := range map[string][]grpcresolver.Option{"[::1]:80": nil, "[::1]:443": {grpcresolver.WithSSLPort()}} {
		to := new(conn)
		r := must.Get(grpcresolver.NewBuilder(c, opts...).Build(resolver.Target{URL: url.URL{Scheme: "zk", Path: "/web"}},
			to, resolver.BuildOptions{}))(t)
		zktest.Eventually(t, generous, "the address "+want, func() bool {
			got, _ := to.addresses()
			return slices.Equal(got, []string{want})
		})
		attrs := to.state.Addresses[0].BalancerAttributes
		in, ok := grpcresolver.InstanceOf[zone](attrs)
		if !ok || in.ID != "a" || !slices.Equal(in.Payload.Tags, []string{"x"}) {
			t.Errorf("the endpoint's instance: %+v, %v", in, ok)
		}
		if _, ok := grpcresolver.InstanceOf[string](attrs); ok {
			t.Error("an instance of another type")
		}
		if !attrs.Equal(attrs) {
			t.Error("attributes differ from themselves")
		}
		r.ResolveNow(resolver.ResolveNowOptions{})
		r.Close()
		if _, err := to.addresses(); err != nil {
			t.Errorf("an error after Close: %v", err)
		}
	}
}

// The end of the registry is reported.
func TestAClosedRegistryIsReported(t *testing.T) {
	c, to := newRegistry(t, zkserver.Run(t, zkenv.DrawVersion(t)...)), new(conn)
	build(t, c, to)
	must.OK(t, c.Close(t.Context()))
	zktest.Eventually(t, generous, "the error", func() bool { _, err := to.addresses(); return err != nil })
}

func build(t *testing.T, r *registry, to *conn) {
	t.Helper()
	built := must.Get(grpcresolver.NewBuilder(r).Build(resolver.Target{URL: url.URL{Scheme: "zk", Path: "/web"}}, to,
		resolver.BuildOptions{}))(t)
	t.Cleanup(built.Close)
}

// An outage from the beginning fails calls that don't wait, with the reason.
func TestNoServerFromTheBeginningIsReported(t *testing.T) {
	server, to := zkserver.Run(t, zkenv.DrawVersion(t)...), new(conn)
	server.Refuse()
	build(t, newRegistry(t, server), to)
	zktest.Eventually(t, generous, "the error", func() bool { _, err := to.addresses(); return err != nil })
	if _, err := to.addresses(); !errors.Is(err, framework.ErrNotConnected) || !strings.Contains(err.Error(), "dial ") {
		t.Errorf("error %v, want why there is no connection", err)
	}
	server.Accept()
	zktest.Eventually(t, generous, "that there are no instances", func() bool {
		_, err := to.addresses()
		return strings.Contains(err.Error(), "no instances of /app/services/web")
	})
}

// The last instances leave: the connection keeps none of them, and learns why. An instance without a port
// is no endpoint, which the error says.
func TestTheEndOfTheLastInstanceIsReported(t *testing.T) {
	server, to := zkserver.Run(t, zkenv.DrawVersion(t)...), new(conn)
	r := newRegistry(t, server)
	_, stop := serve(t, r, discovery.Instance[zone]{ID: "a"})
	build(t, r, to)
	zktest.Eventually(t, generous, "the address", func() bool { got, _ := to.addresses(); return len(got) == 1 })
	register(t, r, discovery.Instance[zone]{Name: "web", ID: "b", Address: "10.0.0.2"})
	stop()
	zktest.Eventually(t, generous, "no address, and why", func() bool {
		got, err := to.addresses()
		return len(got) == 0 && err != nil && strings.Contains(err.Error(), "/app/services/web: none of the 1 instances")
	})
}

// The service may not be read for a while: the reason is reported, the last addresses stay, and later ones
// follow.
func TestARefusedServiceIsReportedAndFollowed(t *testing.T) {
	server, to := zkserver.Run(t, zkenv.DrawVersion(t)...), new(conn)
	operator, r := newClient(t, server), newRegistry(t, server)
	instance := discovery.Instance[zone]{Name: "web", ID: "a", Address: "[::1]", Port: 80}
	register(t, r, instance)
	setACL := func(perms acl.Permission) {
		t.Helper()
		must.Get(operator.SetACL(t.Context(), "/app/services/web", []acl.Entry{{Perms: perms, Scheme: "world", ID: "anyone"}},
			framework.AnyVersion))(t)
	}
	build(t, r, to)
	addresses := func(want ...string) func() bool {
		return func() bool { got, _ := to.addresses(); return slices.Equal(got, want) }
	}
	zktest.Eventually(t, generous, "the address without its brackets", addresses("[::1]:80"))
	setACL(acl.All &^ acl.Read)
	server.Cut() // so that the service is read again
	zktest.Eventually(t, generous, "the error", func() bool { _, err := to.addresses(); return err != nil })
	if got, err := to.addresses(); !errors.Is(err, framework.ErrNoAuth) || len(got) != 1 {
		t.Errorf("addresses %v, error %v; want the last one, and ErrNoAuth", got, err)
	}
	setACL(acl.All)
	instance.ID, instance.Address = "b", "10.0.0.2"
	register(t, r, instance)
	zktest.Eventually(t, generous, "both addresses", addresses("[::1]:80", "10.0.0.2:80"))
}
