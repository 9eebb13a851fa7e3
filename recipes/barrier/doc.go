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
	"errors"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/internal/boundary"
)

// An Option configures a [Barrier] or a [Double]. The constructor reports all faulty options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

// recipe begins the text of errors.
const recipe boundary.Recipe = "barrier"

type config struct {
	acl    []acl.Entry
	name   string
	faults []error
}

// WithACL sets the ACL of the znodes and of parents that are created for them. The default is the
// client's.
func WithACL(list ...acl.Entry) Option {
	return optionFunc(func(cfg *config) { cfg.acl = boundary.ACL(list, &cfg.faults) })
}

// WithName sets a name for a [Double] in telemetry, because metrics have no paths.
func WithName(name string) Option { return optionFunc(func(cfg *config) { cfg.name = name }) }

// newConfig returns the configuration, or all faults of a constructor's arguments.
func newConfig(c *framework.Client, path string, opts []Option) (config, error) {
	var cfg config
	faults := boundary.Apply(opts, func(o Option) { o.apply(&cfg) })
	faults = slices.Concat(boundary.Target(c, path), faults, cfg.faults)
	return cfg, errors.Join(faults...)
}

// aclOption returns the option of a create for the ACL; none for the client's.
func (cfg *config) aclOption() []framework.CreateOption {
	if cfg.acl == nil {
		return nil
	}
	return []framework.CreateOption{framework.WithACL(cfg.acl...)}
}
