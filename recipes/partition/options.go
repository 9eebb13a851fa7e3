package partition

import (
	"errors"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/args"
)

// defaultSettle is how long the members have not changed when keys move.
const defaultSettle = time.Second

// An Option configures a [Partition]. Of package recipes, a Partition takes WithACL, WithLossPolicy,
// WithName and WithSettle. New reports all faulty options at once.
type Option interface{ args.PartitionOption }

type option func(*config)

func (f option) ForPartition(cfg args.Config) { f(cfg.(*config)) }

type config struct {
	args.Options
	id string
}

// WithID sets the id of this process as a member, which no other process may have. It must not be empty
// or contain a slash. The default has the names of the host and the process, and a random part.
func WithID(id string) Option {
	return option(func(cfg *config) {
		if err := args.Element("id", id); err != nil {
			cfg.Fault("%w", err)
		}
		cfg.id = id
	})
}

// newConfig returns the configuration, or all that is wrong with the arguments of New.
func newConfig(c *framework.Client, path string, keys []string, opts []Option) (config, error) {
	cfg := config{Options: args.Options{Settle: defaultSettle}}
	faults := slices.Concat(args.Target(c, path), args.Configure(&cfg, opts, Option.ForPartition), keyFaults(keys))
	return cfg, errors.Join(faults...)
}
