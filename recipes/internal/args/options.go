package args

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/lease"
)

// Options are the options that several recipes take, from package recipes. A recipe's configuration
// embeds them, and has the recipe's own options next to them.
type Options struct {
	Name          string             // in telemetry
	ACL           []acl.Entry        // nil for the client's
	LossPolicy    lease.LossPolicy   // zero for lease.AtDeadline
	Data          []byte             // of a contender's znode; nil for none
	NoMetadata    bool               // in a contender's znode
	QueuePosition func(position int) // nil for none
	Revocation    func(*lease.Lease) // nil to ignore requests
	Settle        time.Duration      // how long members have not changed
	Faults        []error            // of all options
}

// A Config is the configuration of a recipe, which embeds [Options].
type Config interface{ Shared() *Options }

// Shared returns o.
func (o *Options) Shared() *Options { return o }

// The options of each recipe. An option has a method for each recipe that takes it, so that the
// compiler refuses it elsewhere.
type (
	BarrierOption   interface{ ForBarrier(cfg Config) }
	CacheOption     interface{ ForCache(cfg Config) }
	CounterOption   interface{ ForCounter(cfg Config) }
	DiscoveryOption interface{ ForDiscovery(cfg Config) }
	GroupOption     interface{ ForGroup(cfg Config) }
	LeaderOption    interface{ ForLeader(cfg Config) }
	LockOption      interface{ ForLock(cfg Config) }
	NodeOption      interface{ ForNode(cfg Config) }
	PartitionOption interface{ ForPartition(cfg Config) }
	ScheduleOption  interface{ ForSchedule(cfg Config) }
	SemaphoreOption interface{ ForSemaphore(cfg Config) }
)

// ForCache gives the options to a Cache that a recipe keeps.
func (o *Options) ForCache(cfg Config) { cfg.Shared().Name = o.Name }

// ForLock gives the options to a lock that a recipe has.
func (o *Options) ForLock(cfg Config) {
	cfg.Shared().Name, cfg.Shared().ACL, cfg.Shared().LossPolicy = o.Name, o.ACL, o.LossPolicy
}

// ForNode gives the options to a Node that a recipe keeps.
func (o *Options) ForNode(cfg Config) { cfg.Shared().Name, cfg.Shared().ACL = o.Name, o.ACL }

// WithACL returns the option of a create for the ACL; none for the client's.
func (o *Options) WithACL() []framework.CreateOption {
	if o.ACL == nil {
		return nil
	}
	return []framework.CreateOption{framework.WithACL(o.ACL...)}
}

// Fault adds a fault of an option, which names its argument.
func (o *Options) Fault(format string, args ...any) {
	o.Faults = append(o.Faults, fmt.Errorf(format, args...))
}

// Configure applies opts to cfg by apply, the method of the recipe, and returns all faults of options.
func Configure[O any](cfg Config, opts []O, apply func(O, Config)) (faults []error) {
	faults = Apply(cfg, opts, apply)
	return append(faults, cfg.Shared().Faults...)
}

// Apply applies opts to cfg by apply, and returns the faults of options that are nil. It would pass a nil function,
// but only docent implements the interfaces of options.
func Apply[C, O any](cfg C, opts []O, apply func(O, C)) (faults []error) {
	for i, opt := range opts {
		if any(opt) == nil {
			faults = append(faults, fmt.Errorf("option %d: must not be nil", i))
			continue
		}
		apply(opt, cfg)
	}
	return faults
}
