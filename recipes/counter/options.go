package counter

import (
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/args"
)

// An Option configures a [Counter] or a [Value]. Of package recipes, both take WithACL. The constructor reports
// all faulty options at once.
type Option interface{ args.CounterOption }

type optionFunc func(*config)

func (f optionFunc) ForCounter(cfg args.Config) { f(cfg.(*config)) }

type config struct {
	args.Options
	int32 bool
}

// WithInt32 keeps the number in 4 bytes, as Curator's SharedCount and DistributedAtomicInteger, and
// kazoo's Counter with support_curator. It is for a [Counter] only.
func WithInt32() Option { return optionFunc(func(cfg *config) { cfg.int32 = true }) }

// newConfig returns the configuration, or all faults of a constructor's arguments.
func newConfig(c *framework.Client, path string, opts []Option) (config, error) {
	var cfg config
	faults := append(args.Target(c, path), args.Configure(&cfg, opts, Option.ForCounter)...)
	return cfg, errors.Join(faults...)
}
