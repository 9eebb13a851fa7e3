package cache

import (
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cachebounds"
	"github.com/docent-go/docent/recipes/internal/args"
)

// An Option configures a [Cache]. Of package recipes, a Cache takes WithName. New reports all faulty options at once.
type Option interface{ args.CacheOption }

type optionFunc func(*config)

func (f optionFunc) ForCache(cfg args.Config) { f(cfg.(*config)) }

// unlimited is the depth of a cache without [WithDepth].
const unlimited = -1

type config struct {
	args.Options
	depth  int
	keep   func(path string) bool // nil keeps everything
	bounds cachebounds.Bounds
}

// WithDepth limits how far below its path the cache reaches: 0 is the znode alone, 1 includes its
// children. n must not be negative. The default is no limit.
func WithDepth(n int) Option {
	return optionFunc(func(cfg *config) {
		if n < 0 {
			cfg.Fault("depth %d: must be 0 or more", n)
		}
		cfg.depth = n
	})
}

// WithFilter leaves out each znode for which keep returns false, and all below it: they are not
// read. keep must return the same for a path each time, must not block, and has to accept the
// cache's own path. If keep panics, that is logged and the znode is left out. The default is to keep
// everything.
func WithFilter(keep func(path string) bool) Option {
	return optionFunc(func(cfg *config) {
		if keep == nil {
			cfg.Fault("filter: the function must not be nil")
		}
		cfg.keep = keep
	})
}

// newConfig returns the configuration, or all that is wrong with New's arguments.
func newConfig(path string, opts []Option) (config, error) {
	cfg := config{depth: unlimited}
	faults := args.Configure(&cfg, opts, Option.ForCache)
	for _, opt := range opts {
		if bounded, ok := opt.(interface{ CacheBounds() cachebounds.Bounds }); ok {
			cfg.bounds = bounded.CacheBounds()
		}
	}
	if err := framework.ValidatePath(path); err != nil {
		faults = append(faults, err)
	} else if len(faults) == 0 && cfg.keep != nil && !cfg.keep(path) {
		faults = append(faults, errors.New("filter: must accept the cache's own path"))
	}
	return cfg, errors.Join(faults...)
}
