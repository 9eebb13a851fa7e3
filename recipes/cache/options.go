package cache

import (
	"errors"

	"github.com/docent-go/docent/framework"
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
	depth       int
	keep        func(path string) bool // nil keeps everything
	withoutData bool
	byPath      func(path string) bool
	byStat      func(path string, stat framework.Stat) bool
	limit, rate int
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

// WithoutData keeps no data, only Stats: for znodes that are only counted or named.
func WithoutData() Option { return optionFunc(func(cfg *config) { cfg.withoutData = true }) }

// WithDataOf keeps the data of those znodes alone for which one of the functions returns true, and does not
// read the others'. byPath decides before anything is read. byStat decides for the rest by the Stat, and
// then the data costs another read. Both must return the same for the same arguments and must not block.
// If one panics, that is logged, and it has not asked for the data. Servers older
// than ZooKeeper 3.6 send the data nevertheless.
func WithDataOf(byPath func(path string) bool, byStat func(path string, stat framework.Stat) bool) Option {
	return optionFunc(func(cfg *config) {
		if byPath == nil || byStat == nil {
			cfg.Fault("data of: the functions must not be nil")
		}
		cfg.byPath, cfg.byStat = byPath, byStat
	})
}

// WithLimit bounds the number of znodes. Once the cache has n, it leaves others out, with all below them:
// see [Snapshot.LeftOut]. It reads them when there is room again. n must be positive. The default is no
// bound.
func WithLimit(n int) Option {
	return optionFunc(func(cfg *config) {
		if n < 1 {
			cfg.Fault("limit %d: must be 1 or more", n)
		}
		cfg.limit = n
	})
}

// WithRate bounds the reads and listings in a second, so that a fill of a large tree leaves the servers
// to others. n must be positive. The default is no bound.
func WithRate(n int) Option {
	return optionFunc(func(cfg *config) {
		if n < 1 {
			cfg.Fault("rate %d: must be 1 or more", n)
		}
		cfg.rate = n
	})
}

// newConfig returns the configuration, or all that is wrong with New's arguments.
func newConfig(path string, opts []Option) (config, error) {
	cfg := config{depth: unlimited}
	faults := args.Configure(&cfg, opts, Option.ForCache)
	if err := framework.ValidatePath(path); err != nil {
		faults = append(faults, err)
	} else if len(faults) == 0 && cfg.keep != nil && !cfg.keep(path) {
		faults = append(faults, errors.New("filter: must accept the cache's own path"))
	}
	return cfg, errors.Join(faults...)
}
