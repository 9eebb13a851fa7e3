package leader

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/lease"
)

// A Format says which of Curator's recipes can share the path. One path has one format: each would take
// the other's first candidate for no candidate.
type Format int

const (
	// Latch is the format of LeaderLatch. It is the default.
	Latch Format = iota + 1
	// Selector is the format of LeaderSelector, which is that of a mutex, too: a Mutex of package lock
	// takes part.
	Selector
)

// String returns the format's name.
func (f Format) String() string {
	switch f {
	case Latch:
		return "Latch"
	case Selector:
		return "Selector"
	}
	return fmt.Sprintf("Format(%d)", int(f))
}

// kind returns the kind of the format's znodes.
func (f Format) kind() string {
	if f == Selector {
		return queuenode.MutexKind
	}
	return queuenode.LatchKind
}

// An Option configures an election. [New] reports all faulty options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

type config struct {
	format     Format
	id         []byte // nil for none
	metadata   bool
	revoked    func(*lease.Lease)
	lossPolicy lease.LossPolicy
	acl        []acl.Entry
	name       string
	faults     []error
}

// WithID sets all that the candidate's znode holds: Curator's participant id. Without it the znode
// holds what Curator's does: nothing ([Latch]), or the host's IP address ([Selector]).
func WithID(id string) Option {
	return optionFunc(func(cfg *config) { cfg.id = []byte(id) })
}

// WithFormat sets the format. The default is [Latch].
func WithFormat(f Format) Option { return optionFunc(func(cfg *config) { cfg.format = f }) }

// WithMetadata puts the metadata of docent's locks into the znode, with the id as its data: host,
// process, time and owner of the candidate ([lease.Metadata]). Java takes all of that for the id.
func WithMetadata() Option { return optionFunc(func(cfg *config) { cfg.metadata = true }) }

// WithRevocation has fn called when another client asks the leader to resign, as Revoke of package lock
// does. fn gets the lease of the term. It may release it, stop the work or do nothing. fn runs on a
// goroutine of its own, once per request; requests that come together may be one. A candidate
// that is asked while it waits is called when it leads.
func WithRevocation(fn func(l *lease.Lease)) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("revocation: the function must not be nil"))
		}
		cfg.revoked = fn
	})
}

// WithLossPolicy says when a term is lost while there is no connection. The default is
// [lease.AtDeadline]: an outage that ends before the session's deadline costs nothing.
func WithLossPolicy(policy lease.LossPolicy) Option {
	return optionFunc(func(cfg *config) { cfg.lossPolicy = policy })
}

// WithACL sets the ACL of the candidates' znodes and of parents that are created for them. The default
// is the client's.
func WithACL(list ...acl.Entry) Option {
	return optionFunc(func(cfg *config) { cfg.acl = boundary.ACL(list, &cfg.faults) })
}

// WithName sets a name for the election in telemetry, which has no paths on metrics.
func WithName(name string) Option { return optionFunc(func(cfg *config) { cfg.name = name }) }

// newConfig returns the configuration, or all that is wrong with the arguments of New.
func newConfig(c *framework.Client, path string, opts []Option) (config, error) {
	cfg := config{format: Latch, lossPolicy: lease.AtDeadline}
	faults := boundary.Apply(opts, func(o Option) { o.apply(&cfg) })
	if cfg.format != Latch && cfg.format != Selector {
		faults = append(faults, fmt.Errorf("format %v: must be Latch or Selector", cfg.format))
	}
	faults = append(append(contender.Faults(c, path, cfg.lossPolicy), faults...), cfg.faults...)
	return cfg, errors.Join(faults...)
}

// data returns what a candidate's znode holds. owner and party are those of its caller. seen is what telemetry follows of its campaign.
func (cfg *config) data(owner, party string, seen *telemetry.Acquire) []byte {
	switch {
	case cfg.metadata:
		return contender.Metadata(owner, party, cfg.id, seen).Encode()
	case cfg.id == nil && cfg.format == Selector:
		return contender.LocalAddress()
	}
	return cfg.id
}
