package counter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
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
	return optionFunc(func(cfg *config) {
		if len(list) == 0 {
			cfg.faults = append(cfg.faults, errors.New("ACL: must have at least one entry"))
		}
		cfg.acl = slices.Clone(list)
	})
}

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
