package group

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/node"
)

// An Option configures a [Group]. New reports all faulty options at once.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(cfg *config) { f(cfg) }

type config struct {
	settle time.Duration
	name   string
	node   []node.Option // of members that join
	faults []error
}

// WithSettle makes [Group.Changes] wait until nothing has changed for d, and for ten times d at the most:
// a rolling restart is one change, or few. d must not be negative. The default is 0: no wait.
func WithSettle(d time.Duration) Option {
	return option(func(cfg *config) {
		if d < 0 {
			cfg.faults = append(cfg.faults, fmt.Errorf("settle %v: must not be negative", d))
		}
		cfg.settle = d
	})
}

// WithACL sets the ACL of members that join, as [node.WithACL] does. All members have to be allowed to
// read each other.
func WithACL(list ...acl.Entry) Option {
	return option(func(cfg *config) {
		cfg.node = append(cfg.node, node.WithACL(boundary.ACL(list, &cfg.faults)...))
	})
}

// WithName sets a name for the group in telemetry, where paths don't go.
func WithName(name string) Option {
	return option(func(cfg *config) {
		cfg.name = name
		cfg.node = append(cfg.node, node.WithName(name))
	})
}

// newConfig returns the configuration, or all that is wrong with the options.
func newConfig(opts []Option) (config, error) {
	var cfg config
	faults := boundary.Apply(opts, func(o Option) { o.apply(&cfg) })
	return cfg, errors.Join(append(faults, cfg.faults...)...)
}
