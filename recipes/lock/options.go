package lock

import (
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/lease"
)

// An Option configures a lock. Of package recipes, a lock takes WithACL, WithData, WithLossPolicy,
// WithName, WithQueuePosition, WithRevocation and WithoutMetadata. The constructor reports all faulty
// options at once.
type Option interface{ args.LockOption }

type optionFunc func(*config)

func (f optionFunc) ForLock(cfg args.Config) { f(cfg.(*config)) }

// The names of package lease, for users of this package.
type (
	// A Lease is a share in a held lock: the result of one call of Lock or TryLock.
	Lease = lease.Lease
	// A LostError says that a lease was lost, and why.
	LostError = lease.LostError
	// A Participant is one contender of a lock: the holder or a waiter.
	Participant = lease.Participant
	// A WaitError says why a wait for a lock ended without the lock.
	WaitError = lease.WaitError
)

type config struct {
	args.Options
	noTraceparent bool
	handoff       bool // the znode's owner changes: see [Local]
	noReentry     bool
}

// WithoutTraceparent omits the traceparent from the metadata in the lock's znodes. By default, if a
// span records the call that made a znode, the znode has its traceparent, in the format of W3C
// Trace Context. The spans of waiters, in any process, then link to it.
func WithoutTraceparent() Option {
	return optionFunc(func(cfg *config) { cfg.noTraceparent = true })
}

// WithoutReentry makes each call of Lock and TryLock an owner of its own: a second one of the same goroutine, or
// with the same [Owner], waits until the first lease has ended, or returns [ErrHeld]. So goroutines may pass leases
// on as they like. Only the lease releases: Unlock returns [ErrNotOwner], Held returns 0, and a read/write lock
// knows neither a downgrade nor [ErrUpgrade]. The znodes show the caller's owner. Locks without re-entry ignore it.
func WithoutReentry() Option { return optionFunc(func(cfg *config) { cfg.noReentry = true }) }

// newConfig returns the configuration of a lock, or all faults of its constructor's arguments.
func newConfig(kind string, c *framework.Client, path string, opts []Option) (config, error) {
	var cfg config
	faults := append(args.Target(c, path), args.Configure(&cfg, opts, Option.ForLock)...)
	if len(faults) > 0 {
		return config{}, recipe.Error(c, "new "+kind, path, errors.Join(faults...))
	}
	return cfg, nil
}

// newLease returns the first lease of a new hold, with the lock's options.
func (cfg *config) newLease(o hold.Options, members ...*Lease) *Lease {
	return contender.NewLease(o, cfg.LossPolicy, cfg.Revocation, members...)
}

// nodeData returns the data for the znode of c's attempt. attempt is its id; "" if the znode's name has one. acq is the
// telemetry of the call.
func (cfg *config) nodeData(
	client *framework.Client, c caller, attempt string, acq *telemetry.Acquire,
) []byte {
	return contender.NodeData(&cfg.Options, func() lease.Metadata {
		if cfg.noTraceparent {
			acq = nil
		}
		m := contender.Metadata(c.owner.String(), c.party(client), cfg.Data, acq)
		m.Attempt, m.Handoff = attempt, cfg.handoff
		return m
	})
}
