package discovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/membership"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
)

// recipe begins the text of errors.
const recipe = args.Recipe("discovery")

// A Registry is the services below a base path: Curator's ServiceDiscovery. T is the type of their
// payloads. Its methods may be called concurrently.
type Registry[T any] struct {
	client *framework.Client
	base   string
	cfg    config
	reader reader[Instance[T]]
	open   membership.Set // of Nodes, by their paths, and of the caches of Services
}

// New returns the registry at the path base; it sends nothing yet. The registry has to be closed. If
// an argument is faulty, New returns all faults.
func New[T any](c *framework.Client, base string, opts ...Option) (*Registry[T], error) {
	cfg, err := newConfig(opts)
	if err = errors.Join(args.Client(c), framework.ValidatePath(base), err); err != nil {
		return nil, recipe.Error(c, "new", base, err)
	}
	return &Registry[T]{
		client: c, base: base, cfg: cfg,
		reader: reader[Instance[T]]{decode: decode[T], report: cfg.reporter(c)},
	}, nil
}

// Register begins to create the znode of the instance, and returns the registration, which keeps the
// znode: [Registration.Await] returns once it exists. An empty ID is replaced by a random one, and a
// zero Registered by the present time. Faults of the instance are returned before anything is sent. The
// ID must not be that of an open registration of this Registry for the service. After Close,
// Register returns [framework.ErrClosed].
func (r *Registry[T]) Register(in Instance[T]) (*Registration[T], error) {
	in = in.completed(rand.Text(), time.Now())
	path := zkpath.Join(zkpath.Join(r.base, in.Name), in.ID)
	reg := &Registration[T]{client: r.client, cfg: &r.cfg, path: path, updating: make(chan struct{}, 1), in: in}
	if err := r.register(reg); err != nil {
		return nil, recipe.Error(r.client, "register", path, err)
	}
	return reg, nil
}

func (r *Registry[T]) register(reg *Registration[T]) error {
	in := reg.Instance()
	data, err := encode(&in, &r.cfg)
	if err != nil {
		return err
	}
	opts := []node.Option{&r.cfg}
	if in.Kind != Dynamic {
		opts = append(opts, node.Persistent(), node.WithAdoption(reg.describedBy))
	}
	reg.node, err = membership.Open(&r.open, reg.path, func() (*node.Node, error) {
		return node.New(r.client, reg.path, data, opts...)
	})
	if errors.Is(err, membership.ErrOpen) {
		err = fmt.Errorf("ID %q: this Registry has registered it and has not closed it", in.ID)
	}
	return err
}

// Services returns the names of the services in their order, as far as the client's server knows. A
// service whose last instance has gone may be among them until the ensemble removes its znode. If ctx
// ends first, the error wraps ctx's.
func (r *Registry[T]) Services(ctx context.Context) ([]string, error) {
	names, err := namesIn(ctx, r.client, r.base)
	return names, recipe.CallError(ctx, r.client, "services of", r.base, err)
}

// Instances returns the instances of the service in the order of their znodes, as far as the client's
// server knows; disabled instances are among them. Znodes that are no instances are left out: see
// [WithUnreadable]. If ctx ends first, the error wraps ctx's.
func (r *Registry[T]) Instances(ctx context.Context, service string) ([]Instance[T], error) {
	usercall.Require("ctx", ctx != nil)
	path, err := r.pathOf(service)
	var found []Instance[T]
	if err == nil {
		found, err = r.reader.directory(ctx, r.client, path)
	}
	return found, recipe.CallError(ctx, r.client, "instances of", path, err)
}

// Watch returns the service, and begins to read its instances: see [Service.Ready]. The service need
// not exist, and nothing is created. It has to be closed, and ends with the Registry, too.
func (r *Registry[T]) Watch(service string) (*Service[T], error) {
	path, err := r.pathOf(service)
	if err != nil {
		return nil, recipe.Error(r.client, "watch", path, err)
	}
	s := &Service[T]{client: r.client, path: path, reader: &r.reader}
	s.cache, err = membership.Open(&r.open, s, func() (watched, error) {
		c, err := cache.New(r.client, path, cache.WithDepth(1), &r.cfg)
		return watched{c}, err
	})
	if err != nil {
		return nil, recipe.Error(r.client, "watch", path, err)
	}
	s.values = cache.Of(s.cache.Cache, model.Codec[Instance[T]]{Decode: decode[T]})
	return s, nil
}

// Close closes all registrations and services of the Registry. It deletes the znodes of [Dynamic]
// instances and no others: they are gone, or the client deletes them in the background. If ctx ends
// first, the error wraps ctx's. A further Close does nothing.
func (r *Registry[T]) Close(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	usercall.Require("the Registry's client", r.client != nil)
	return recipe.CallError(ctx, r.client, "close", r.base, r.open.Close(ctx))
}

// pathOf returns the path of the service's znode.
func (r *Registry[T]) pathOf(service string) (string, error) {
	return zkpath.Join(r.base, service), args.Element("service", service)
}
