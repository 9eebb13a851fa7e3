package discovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/node"
)

// recipe begins the text of errors.
const recipe = boundary.Recipe("discovery")

// A Registry is the services below a base path: Curator's ServiceDiscovery. T is the type of their
// payloads. Its methods may be called concurrently.
type Registry[T any] struct {
	client   *framework.Client
	base     string
	cfg      config
	reporter reporter

	mu         sync.Mutex // guards following; never held across a request or a callback
	registered map[string]*node.Node
	watched    map[*cache.Cache]bool
	closed     bool
}

// New returns the registry at the path base; it sends nothing yet. The registry has to be closed. If
// an argument is faulty, New returns all faults. It panics if c is nil.
func New[T any](c *framework.Client, base string, opts ...Option) (*Registry[T], error) {
	if c == nil {
		panic("discovery: New with a nil client")
	}
	cfg, err := newConfig(opts)
	if err = errors.Join(framework.ValidatePath(base), err); err != nil {
		return nil, recipe.Error("new", base, err)
	}
	return &Registry[T]{
		client: c, base: base, cfg: cfg,
		reporter:   reporter{client: c, fn: cfg.unreadable, reported: make(map[string]int64)},
		registered: make(map[string]*node.Node), watched: make(map[*cache.Cache]bool),
	}, nil
}

// Register begins to create the znode of the instance, and returns the registration, which keeps the
// znode: [Registration.Await] returns once it exists. An empty ID is replaced by a random one, and a
// zero Registered by the present time. Faults of the instance are returned before anything is sent. The
// ID must not be that of an open registration of this Registry for the service. After Close,
// Register returns [framework.ErrClosed].
func (r *Registry[T]) Register(in Instance[T]) (*Registration[T], error) {
	if in.ID == "" {
		in.ID = rand.Text()
	}
	if in.Registered.IsZero() {
		in.Registered = time.Now()
	}
	in.Registered = in.Registered.UTC().Truncate(time.Millisecond)
	path := framework.JoinPath(framework.JoinPath(r.base, in.Name), in.ID)
	reg, err := r.register(in, path)
	return reg, recipe.Error("register", path, err)
}

func (r *Registry[T]) register(in Instance[T], path string) (*Registration[T], error) {
	if err := in.faults(path, &r.cfg); err != nil {
		return nil, err
	}
	data, err := encode(&in, &r.cfg)
	if err != nil {
		return nil, err
	}
	opts := slices.Clone(r.cfg.node)
	if in.Kind != Dynamic {
		opts = append(opts, node.Persistent())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, framework.ErrClosed
	}
	if other := r.registered[path]; other != nil && !other.Closed() {
		return nil, fmt.Errorf("ID %q: this Registry has registered it and has not closed it", in.ID)
	}
	n, err := node.New(r.client, path, data, opts...)
	if err != nil {
		return nil, err
	}
	r.registered[path] = n
	return &Registration[T]{registry: r, path: path, node: n, in: in}, nil
}

// Services returns the names of the services in their order, as far as the client's server knows. A
// service whose last instance has gone may be among them until the ensemble removes its znode. If ctx
// ends first, the error wraps ctx's.
func (r *Registry[T]) Services(ctx context.Context) ([]string, error) {
	names, err := r.children(cause.Inside(ctx), r.base)
	return names, recipe.CallError(ctx, "services of", r.base, err)
}

// Instances returns the instances of the service in the order of their znodes, as far as the client's
// server knows; disabled instances are among them. Znodes that are no instances are left out: see
// [WithUnreadable]. If ctx ends first, the error wraps ctx's.
func (r *Registry[T]) Instances(ctx context.Context, service string) ([]Instance[T], error) {
	path, err := r.pathOf(service)
	var found []Instance[T]
	if err == nil {
		found, err = r.instances(cause.Inside(ctx), path)
	}
	return found, recipe.CallError(ctx, "instances of", path, err)
}

func (r *Registry[T]) instances(ctx context.Context, path string) ([]Instance[T], error) {
	paths, err := r.children(ctx, path)
	if err != nil {
		return nil, err
	}
	for i, id := range paths {
		paths[i] = framework.JoinPath(path, id)
	}
	reads, faults := r.client.GetEach(ctx, paths...)
	found := make([]Instance[T], 0, len(paths))
	for i, path := range paths {
		var in Instance[T]
		err := faults[i]
		if err == nil {
			in, err = decode[T](reads[i].Data)
		}
		switch {
		case errors.Is(err, framework.ErrNoNode):
		case faults[i] != nil && !errors.Is(err, framework.ErrNoAuth):
			return nil, err
		case err != nil:
			r.reporter.report(path, reads[i].Stat, err)
		default:
			found = append(found, in)
		}
	}
	return found, nil
}

// Watch returns the service, and begins to read its instances: see [Service.Ready]. The service need
// not exist, and nothing is created. It has to be closed, and ends with the Registry, too.
func (r *Registry[T]) Watch(service string) (*Service[T], error) {
	path, err := r.pathOf(service)
	if err != nil {
		return nil, recipe.Error("watch", path, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, recipe.Error("watch", path, framework.ErrClosed)
	}
	c, err := cache.New(r.client, path, cache.WithDepth(1), cache.WithName(r.cfg.name))
	if err != nil {
		return nil, recipe.Error("watch", path, err)
	}
	r.watched[c] = true
	return &Service[T]{registry: r, path: path, cache: c}, nil
}

// Close closes all registrations and services of the Registry. It deletes the znodes of [Dynamic]
// instances and no others: they are gone, or the client deletes them in the background. If ctx ends
// first, the error wraps ctx's. A further Close does nothing.
func (r *Registry[T]) Close(ctx context.Context) error {
	r.mu.Lock()
	registered, watched := r.registered, r.watched
	r.registered, r.watched, r.closed = nil, nil, true
	r.mu.Unlock()
	var faults []error
	for _, n := range registered {
		faults = append(faults, n.Close(cause.Inside(ctx)))
	}
	for c := range watched {
		faults = append(faults, c.Close())
	}
	return recipe.CallError(ctx, "close", r.base, errors.Join(faults...))
}

// children returns the names of the children in their order; none if there is no znode.
func (r *Registry[T]) children(ctx context.Context, path string) ([]string, error) {
	names, _, err := r.client.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// pathOf returns the path of the service's znode.
func (r *Registry[T]) pathOf(service string) (string, error) {
	path := framework.JoinPath(r.base, service)
	if service == "" || strings.Contains(service, "/") {
		return path, fmt.Errorf("service %q: must not be empty or contain a slash", service)
	}
	return path, framework.ValidatePath(path)
}
