package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
)

// An Option configures a [Node]. Of package recipes, a Node takes WithACL and WithName. New reports all faulty
// options at once.
type Option interface{ args.NodeOption }

type option func(*config)

func (f option) ForNode(cfg args.Config) { f(cfg.(*config)) }

type config struct {
	args.Options
	sequential, persistent, ttlSet bool

	ttl   time.Duration
	adopt func(data []byte) bool
}

// Sequential appends a new number to the path at each creation of the znode. A random id before it
// protects the name, as Curator does. So no znode can be in the way. The Node has the znode of a
// former session deleted in the background. See [Node.Path].
func Sequential() Option { return option(func(cfg *config) { cfg.sequential = true }) }

// Persistent keeps a znode that belongs to no session, and that [Node.Close] does not delete. If there
// is such a znode at the path already, the Node adopts it and writes its own data.
func Persistent() Option { return option(func(cfg *config) { cfg.persistent = true }) }

// WithAdoption makes a Node that is [Persistent] or has a TTL adopt an existing znode only if fn returns
// true for its data. Any other znode is another client's: [ErrTaken]. If another client writes to the
// znode before the Node does, fn is called again. It is not called for data of the Node's own. fn must
// not block: the Node makes no request meanwhile. If fn panics, [Node.Await] returns an error.
func WithAdoption(fn func(data []byte) bool) Option {
	return option(func(cfg *config) {
		if fn == nil {
			cfg.Fault("adoption: the function must not be nil")
		}
		cfg.adopt = fn
	})
}

// WithTTL keeps a znode that belongs to no session, and that the ensemble deletes when no Node has kept
// it for d. Its layout is that of Curator's PersistentTtlNode: the Node writes to a child, "touch",
// every d/2, which notifies no watch of the data. An existing znode is adopted as with [Persistent]. d
// must be between 1 ms and 34 years, and the servers have to allow TTL znodes.
func WithTTL(d time.Duration) Option {
	return option(func(cfg *config) { cfg.ttl, cfg.ttlSet = d, true })
}

// lasting reports whether the znode outlives sessions.
func (cfg *config) lasting() bool { return cfg.persistent || cfg.ttlSet }

// adoption returns the function of WithAdoption as the keeper calls it: on a goroutine of its own.
func (cfg *config) adoption() func(ctx context.Context, data []byte) (bool, error) {
	if cfg.adopt == nil {
		return nil
	}
	calls := new(usercall.Calls)
	return func(ctx context.Context, data []byte) (bool, error) {
		own, err := usercall.Bounded(ctx, calls, func() (bool, error) { return cfg.adopt(data), nil }, nil)
		if err != nil {
			err = fmt.Errorf("WithAdoption: %w", err)
		}
		return own, err
	}
}

// create returns how the znode is to be created, with more options.
func (cfg *config) create(more ...framework.CreateOption) []framework.CreateOption {
	opts := append(append(more, framework.WithParents()), cfg.WithACL()...)
	switch {
	case cfg.sequential:
		return append(opts, framework.Ephemeral(), framework.Sequential(), framework.Protected())
	case cfg.ttlSet:
		return append(opts, framework.TTL(cfg.ttl))
	case cfg.persistent:
		return opts
	}
	return append(opts, framework.Ephemeral(), framework.KnownBySession())
}

// newConfig returns the configuration of a Node, or all that is wrong with the arguments of New.
func newConfig(c *framework.Client, path string, data []byte, opts []Option) (config, error) {
	var cfg config
	faults := args.Configure(&cfg, opts, Option.ForNode)
	if path == "/" {
		faults = append(faults, errors.New("path: must not be the root"))
	}
	if cfg.sequential && cfg.lasting() || cfg.persistent && cfg.ttlSet {
		faults = append(faults, errors.New("options Sequential, Persistent and WithTTL: must not be combined"))
	}
	err := args.Client(c)
	if err == nil {
		err = c.CheckCreate(path, data, cfg.create()...)
	} else {
		err = errors.Join(err, framework.ValidatePath(path))
	}
	return cfg, errors.Join(append(faults, err)...)
}
