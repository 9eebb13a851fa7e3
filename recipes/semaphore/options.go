package semaphore

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/permits"
)

// An Option configures a semaphore. Of package recipes, a semaphore takes WithACL, WithData,
// WithLossPolicy, WithName, WithQueuePosition and WithoutMetadata. [New] reports all faulty options at once.
type Option interface{ args.SemaphoreOption }

type optionFunc func(*config)

func (f optionFunc) ForSemaphore(cfg args.Config) { f(cfg.(*config)) }

type config struct {
	args.Options
	permitsAt string
}

// WithPermitsAt takes the number of permits from the znode at path, which holds 4 bytes, big endian,
// as Curator's SharedCount writes them. If the znode is missing, it is created with New's number. A
// smaller number takes no permit from a holder; a greater one wakes the contender that waits. A
// server that lags behind its leader may show an earlier number. A call costs one read more.
func WithPermitsAt(path string) Option {
	return optionFunc(func(cfg *config) {
		cfg.permitsAt = path
		if err := framework.ValidatePath(path); err != nil {
			cfg.Fault("permits at: %w", err)
		}
	})
}

// newConfig returns the configuration, or all faults of New's arguments.
func newConfig(c *framework.Client, path string, number int, opts []Option) (config, error) {
	var cfg config
	faults := args.Target(c, path)
	if number < 1 || number > math.MaxInt32 {
		faults = append(faults, fmt.Errorf("permits %d: must be between 1 and %d", number, math.MaxInt32))
	}
	faults = append(faults, args.Configure(&cfg, opts, Option.ForSemaphore)...)
	if dir := permits.LeasesDir(path); cfg.permitsAt == dir || strings.HasPrefix(cfg.permitsAt, dir+"/") {
		faults = append(faults, fmt.Errorf("permits at %s: must not be in %s, whose children count as permits", cfg.permitsAt, dir))
	}
	return cfg, errors.Join(faults...)
}
