package leader

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
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

// An Option configures an election. Of package recipes, an election takes WithACL, WithLossPolicy,
// WithName and WithRevocation. [New] reports all faulty options at once.
type Option interface{ args.LeaderOption }

type optionFunc func(*config)

func (f optionFunc) ForLeader(cfg args.Config) { f(cfg.(*config)) }

type config struct {
	args.Options
	format   Format
	id       []byte // nil for none
	metadata bool
}

// WithID sets all that the candidate's znode holds: Curator's participant id. An empty id leaves what
// Curator's candidates hold without one: nothing ([Latch]), or the host's IP address ([Selector]). Without
// WithID the znode holds the metadata of docent's locks: see [WithMetadata].
func WithID(id string) Option {
	return optionFunc(func(cfg *config) { cfg.id = []byte(id) })
}

// WithFormat sets the format. The default is [Latch].
func WithFormat(f Format) Option { return optionFunc(func(cfg *config) { cfg.format = f }) }

// WithMetadata puts the metadata of docent's locks into the znode, with the id of [WithID] as its data: host,
// process, time and owner of the candidate ([lease.Metadata]). That is the default without an id. Java takes
// all of that, which is one line of JSON, for the id.
func WithMetadata() Option { return optionFunc(func(cfg *config) { cfg.metadata = true }) }

// newConfig returns the configuration, or all that is wrong with the arguments of New.
func newConfig(c *framework.Client, path string, opts []Option) (config, error) {
	cfg := config{format: Latch}
	faults := append(args.Target(c, path), args.Configure(&cfg, opts, Option.ForLeader)...)
	if cfg.format != Latch && cfg.format != Selector {
		faults = append(faults, fmt.Errorf("format %v: must be Latch or Selector", cfg.format))
	}
	return cfg, errors.Join(faults...)
}

// data returns what a candidate's znode holds. owner and party are those of its caller. acq is what telemetry
// follows of its campaign.
func (cfg *config) data(owner, party string, acq *telemetry.Acquire) []byte {
	switch {
	case cfg.metadata || cfg.id == nil:
		return contender.Metadata(owner, party, cfg.id, acq).Encode()
	case len(cfg.id) == 0 && cfg.format == Selector:
		return contender.LocalAddress()
	}
	return cfg.id
}
