// Package barrier keeps processes waiting for one another: Curator's DistributedBarrier and
// DistributedDoubleBarrier.
//
// While a [Barrier] is set, every client waits for its removal. A [Double] lets a number of members
// begin together and end together. A member's place in a Double is a [lease.Lease], which is lost
// with the member's session, as package lease describes.
//
// # Nodes
//
// A Barrier is the persistent znode at its path. A Double has an ephemeral znode /path/<id> for each
// member. The persistent znode /path/ready exists from the entry of the last member until all have
// left. Go, Java and kazoo processes can share both.
//
// # Errors
//
// [*lease.LostError]; a [*lease.WaitError], which wraps the context's error, if the context ended an
// Enter; and the client's errors, as package framework describes them. Everything may be called
// concurrently.
package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/cause"
)

// An Option configures a [Barrier] or a [Double]. The constructor reports all faulty options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

type config struct {
	acl    []acl.Entry
	name   string
	faults []error
}

// WithACL sets the ACL of the znodes and of parents that are created for them. The default is the
// client's.
func WithACL(list ...acl.Entry) Option {
	return optionFunc(func(cfg *config) {
		if len(list) == 0 {
			cfg.faults = append(cfg.faults, errors.New("ACL: must have at least one entry"))
		}
		cfg.acl = slices.Clone(list)
	})
}

// WithName sets a name for a [Double] in telemetry, because metrics have no paths.
func WithName(name string) Option { return optionFunc(func(cfg *config) { cfg.name = name }) }

// newConfig returns the configuration, or all faults of a constructor's arguments.
func newConfig(c *framework.Client, path string, opts []Option) (config, error) {
	var cfg config
	var faults []error
	if c == nil {
		faults = append(faults, errors.New("client: must not be nil"))
	}
	if err := framework.ValidatePath(path); err != nil {
		faults = append(faults, err)
	} else if path == "/" {
		faults = append(faults, errors.New("path: must not be the root"))
	}
	for i, opt := range opts {
		if opt == nil {
			faults = append(faults, fmt.Errorf("option %d: must not be nil", i))
			continue
		}
		opt.apply(&cfg)
	}
	return cfg, errors.Join(append(faults, cfg.faults...)...)
}

// creation returns the options of a create.
func (cfg *config) creation(opts ...framework.CreateOption) []framework.CreateOption {
	opts = append(opts, framework.WithParents())
	if cfg.acl != nil {
		opts = append(opts, framework.WithACL(cfg.acl...))
	}
	return opts
}

// callError wraps err once, at an exported function that was called with ctx, and joins the cause of
// ctx's end.
func callError(ctx context.Context, op, path string, err error) error {
	return opError(op, path, cause.Join(ctx, err))
}

// opError wraps err once, at an exported function; nil stays nil.
func opError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("barrier: %s %s: %w", op, path, err)
}

// except returns err, or nil if err is the one that is no failure.
func except(err, noFailure error) error {
	if errors.Is(err, noFailure) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
