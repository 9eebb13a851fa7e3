// Package grpcresolver resolves the targets of gRPC clients by a registry of package discovery, in
// the format of Curator's x-discovery. The target "zk:///web" is the service "web".
//
//	conn, err := grpc.NewClient("zk:///web",
//		grpc.WithResolvers(grpcresolver.NewBuilder(registry)),
//		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
//		…)
//
// Each instance that is not disabled and has an address and a port, from 1 to 65535, is an endpoint. A
// connection follows the instances as they come and go. During an outage of ZooKeeper, and while the client
// may not read the service, it keeps the last ones. If the service has no endpoint, calls that don't wait
// for a connection fail with its path, as with a mistyped name. Once the last endpoint has left, some balancers
// have a text of their own: that of round_robin is "no children to pick from". If the instances can't be
// read, calls wait for three seconds, and then fail with the reason.
//
// The package is a module of its own, so that programs without gRPC don't depend on it.
//
// Stability: may change.
package grpcresolver

import (
	"context"
	"fmt"
	"math"
	"net"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/discovery"
)

// Scheme is the scheme of the targets, as in "zk:///web".
const Scheme = "zk"

// An Option configures a builder.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(cfg *config) { f(cfg) }

type config struct{ ssl bool }

// WithSSLPort resolves to the instances' SSLPort, not to their Port.
func WithSSLPort() Option { return option(func(cfg *config) { cfg.ssl = true }) }

// NewBuilder returns a builder of resolvers that find the instances of services in the registry. The
// registry has to stay open as long as the connections. NewBuilder panics if r or an option is nil.
func NewBuilder[T any](r *discovery.Registry[T], opts ...Option) resolver.Builder {
	usercall.Require("registry", r != nil)
	b := &builder[T]{registry: r}
	for _, opt := range opts {
		usercall.Require("option", opt != nil)
		opt.apply(&b.cfg)
	}
	return b
}

type builder[T any] struct { // immutable
	registry *discovery.Registry[T]
	cfg      config
}

// Scheme returns [Scheme].
func (*builder[T]) Scheme() string { return Scheme }

// Build returns a resolver of the target's service, which the connection closes.
func (b *builder[T]) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	if target.URL.Host != "" {
		return nil, fmt.Errorf("grpcresolver: target %s: must have no authority, as in zk:///%s", target, target.Endpoint())
	}
	service, err := b.registry.Watch(target.Endpoint())
	if err != nil {
		return nil, fmt.Errorf("grpcresolver: target %s: %w", target, err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // the resolver's own life
	r := &watcher[T]{service: service, cc: cc, cfg: b.cfg, cancel: cancel}
	r.loop.Go(func() { r.run(ctx) })
	return r, nil
}

// A watcher passes the instances of a service to a connection.
type watcher[T any] struct {
	service *discovery.Service[T]
	cc      resolver.ClientConn
	cfg     config
	cancel  context.CancelFunc
	loop    sync.WaitGroup

	resolved bool // the connection has had an endpoint; owned by run
}

// patience is how long calls wait for the first instances. After that, calls that don't wait for a
// connection fail, with what the resolver waits for.
const patience = 3 * time.Second

// run ends with the resolver, or with the registry. Close waits for it.
func (r *watcher[T]) run(ctx context.Context) {
	first, cancel := context.WithTimeout(ctx, patience)
	err := r.service.Ready(first)
	cancel()
	if first.Err() != nil && ctx.Err() == nil { // other errors come with the changes
		r.report(err)
	}
	for instances, err := range r.service.Changes(ctx) {
		if err != nil {
			r.report(err)
			continue
		}
		r.update(instances)
	}
	if err := r.service.Ready(ctx); err != nil && ctx.Err() == nil { // the registry or its client is closed
		r.report(err)
	}
}

// update passes the endpoints of the instances to the connection. If there are none, it reports why. A
// balancer that never had an endpoint passes that on to the calls, so it gets no empty list first.
func (r *watcher[T]) update(instances []discovery.Instance[T]) {
	state := r.state(instances)
	if len(state.Addresses) > 0 || r.resolved {
		_ = r.cc.UpdateState(state) // an error is the balancer's, which gets the next change
		r.resolved = true
	}
	switch {
	case len(state.Addresses) > 0:
	case len(instances) == 0:
		r.report(fmt.Errorf("no instances of %s", r.service.AbsolutePath()))
	default:
		r.report(fmt.Errorf("%s: none of the %d instances is enabled and has an address and a port", r.service.AbsolutePath(), len(instances)))
	}
}

// report tells the connection why there are no instances, or why they can't be read. It keeps the last
// endpoints that it got.
func (r *watcher[T]) report(err error) {
	if err != nil {
		r.cc.ReportError(fmt.Errorf("grpcresolver: %w", err))
	}
}

// state returns the endpoints of the instances.
func (r *watcher[T]) state(instances []discovery.Instance[T]) resolver.State {
	state := resolver.State{Addresses: []resolver.Address{}}
	for _, in := range instances {
		port := in.Port
		if r.cfg.ssl {
			port = in.SSLPort
		}
		if in.Disabled || in.Address == "" || port < 1 || port > math.MaxUint16 {
			continue
		}
		state.Addresses = append(state.Addresses, resolver.Address{
			Addr:               net.JoinHostPort(host(in.Address), strconv.Itoa(port)),
			BalancerAttributes: attributes.New(instanceKey{}, value[T]{in}), // gRPC moves them to the endpoint
		})
	}
	return state
}

// host returns the address without the brackets that an IPv6 address may have.
func host(address string) string {
	inner, opened := strings.CutPrefix(address, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if opened && closed {
		return inner
	}
	return address
}

// ResolveNow does nothing: changes come by themselves.
func (*watcher[T]) ResolveNow(resolver.ResolveNowOptions) {}

// Close ends the resolver.
func (r *watcher[T]) Close() {
	r.cancel()
	r.loop.Wait()
	_ = r.service.Close() // it has no listeners to wait for
}

type instanceKey struct{}

// A value is an instance as an attribute. Payloads need not be comparable.
type value[T any] struct{ discovery.Instance[T] }

// Equal reports whether the other value is the same instance. gRPC calls it.
func (v value[T]) Equal(other any) bool { return reflect.DeepEqual(v, other) }

// InstanceOf returns the instance of the endpoint from its attributes, for balancers: that of
// resolver.Endpoint.Attributes. It returns false if the endpoint is not of a builder of this type.
func InstanceOf[T any](a *attributes.Attributes) (discovery.Instance[T], bool) {
	v, ok := a.Value(instanceKey{}).(value[T])
	return v.Instance, ok
}
