package counter

import (
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/internal/boundary"
)

// An Option configures a [Counter] or a [Value]. The constructor reports all faulty options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

type config struct {
	int32  bool
	acl    []acl.Entry
	faults []error
}

// WithInt32 keeps the number in 4 bytes, as Curator's SharedCount and DistributedAtomicInteger, and
// kazoo's Counter with support_curator. It is for a [Counter] only.
func WithInt32() Option { return optionFunc(func(cfg *config) { cfg.int32 = true }) }

// WithACL sets the ACL of the znode and of parents that are created for it. The default is the
// client's.
func WithACL(list ...acl.Entry) Option {
	return optionFunc(func(cfg *config) { cfg.acl = boundary.ACL(list, &cfg.faults) })
}

// newConfig returns the configuration, or all faults of a constructor's arguments.
func newConfig(c *framework.Client, path string, opts []Option) (config, error) {
	var cfg config
	faults := boundary.Apply(opts, func(o Option) { o.apply(&cfg) })
	faults = slices.Concat(boundary.Target(c, path), faults, cfg.faults)
	return cfg, errors.Join(faults...)
}
