package partition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/lease"
)

// defaultSettle is how long the members have not changed when keys move.
const defaultSettle = time.Second

// An Option configures a [Partition]. New reports all faulty options at once.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(cfg *config) { f(cfg) }

type config struct {
	id     string
	settle time.Duration
	policy lease.LossPolicy
	acl    []acl.Entry
	name   string
	faults []error
}

// WithID sets the id of this process as a member, which no other process may have. It must not be empty
// or contain a slash. The default has the names of the host and the process, and a random part.
func WithID(id string) Option {
	return option(func(cfg *config) {
		if id == "" || strings.Contains(id, "/") {
			cfg.faults = append(cfg.faults, fmt.Errorf("id %q: must not be empty or contain a slash", errtype.Shortened(id)))
		}
		cfg.id = id
	})
}

// WithSettle moves keys once the members have not changed for d, and after ten times d at the most: a
// rolling restart is few changes. d must not be negative. The default is a second.
func WithSettle(d time.Duration) Option {
	return option(func(cfg *config) {
		if d < 0 {
			cfg.faults = append(cfg.faults, fmt.Errorf("settle %v: must not be negative", d))
		}
		cfg.settle = d
	})
}

// WithLossPolicy says when the leases of keys are lost while there is no connection. The default is
// [lease.AtDeadline]: an outage that ends before the session's deadline moves no key.
func WithLossPolicy(policy lease.LossPolicy) Option {
	return option(func(cfg *config) { cfg.policy = policy })
}

// WithACL sets the ACL of the znodes of this member and of parents that are created for them. All
// members have to be allowed to read and write each other's. The default is the client's.
func WithACL(list ...acl.Entry) Option {
	return option(func(cfg *config) { cfg.acl = boundary.ACL(list, &cfg.faults) })
}

// WithName sets a name for the partition in telemetry, which has no paths on metrics.
func WithName(name string) Option { return option(func(cfg *config) { cfg.name = name }) }

// newConfig returns the configuration, or all that is wrong with the arguments of New.
func newConfig(c *framework.Client, path string, keys []string, opts []Option) (config, error) {
	cfg := config{settle: defaultSettle, policy: lease.AtDeadline}
	faults := boundary.Apply(opts, func(o Option) { o.apply(&cfg) })
	faults = slices.Concat(contender.Faults(c, path, cfg.policy), faults, cfg.faults)
	return cfg, errors.Join(append(faults, keyFaults(keys)...)...)
}
