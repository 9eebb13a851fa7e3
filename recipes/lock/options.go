package lock

import (
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/lease"
)

// An Option configures a lock. The constructor reports all faulty options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

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
	data          []byte
	noMetadata    bool
	noTraceparent bool
	handoff       bool // the znode's owner changes: see [Local]
	lossPolicy    lease.LossPolicy
	revoked       func(*Lease)
	position      func(int)
	acl           []acl.Entry
	name          string
	faults        []error
}

// WithData sets the data that [Participant.Data] shows. With [WithoutMetadata] it is all that the
// lock's znodes hold.
func WithData(data []byte) Option {
	return optionFunc(func(cfg *config) { cfg.data = append([]byte{}, data...) })
}

// WithoutMetadata omits the metadata from the lock's znodes: the creator's owner, host, process and
// time (see [lease.Metadata]). The znodes then hold the same as Curator's: the data of [WithData], or the
// host's IP address as text.
func WithoutMetadata() Option {
	return optionFunc(func(cfg *config) { cfg.noMetadata = true })
}

// WithoutTraceparent omits the traceparent from the metadata in the lock's znodes. By default, if a
// span records the call that made a znode, the znode has its traceparent, in the format of W3C
// Trace Context. The spans of waiters, in any process, then link to it.
func WithoutTraceparent() Option {
	return optionFunc(func(cfg *config) { cfg.noTraceparent = true })
}

// WithLossPolicy says when a lease counts as lost while there is no connection.
// The default is [lease.AtDeadline].
func WithLossPolicy(policy lease.LossPolicy) Option {
	return optionFunc(func(cfg *config) { cfg.lossPolicy = policy })
}

// WithACL sets the ACL of the lock's znodes and of parents that are created for
// them. The default is the client's.
func WithACL(list ...acl.Entry) Option {
	return optionFunc(func(cfg *config) { cfg.acl = boundary.ACL(list, &cfg.faults) })
}

// WithName sets a name for the lock in telemetry, because metrics have no paths.
func WithName(name string) Option {
	return optionFunc(func(cfg *config) { cfg.name = name })
}

// WithQueuePosition calls fn with the number of contenders ahead while Lock waits: whenever the
// call sees a change, and with 0 at the grant. It costs no request, so most changes further ahead
// stay unseen. The number can also grow, for example if the session ended and the call queues
// again. A goroutine in Lock calls fn, which delays it. The calls of one attempt are sequential.
func WithQueuePosition(fn func(position int)) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("queue position: the function must not be nil"))
		}
		cfg.position = fn
	})
}

// newConfig returns the configuration of a lock, or all faults of its constructor's arguments.
func newConfig(kind string, c *framework.Client, path string, opts []Option) (config, error) {
	cfg := config{lossPolicy: lease.AtDeadline}
	faults := boundary.Apply(opts, func(o Option) { o.apply(&cfg) })
	faults = append(contender.Faults(c, path, cfg.lossPolicy), faults...)
	if len(faults)+len(cfg.faults) == 0 {
		return cfg, nil
	}
	return config{}, opError("new "+kind, path, errors.Join(append(faults, cfg.faults...)...))
}

// newLease returns the first lease of a new hold, with the lock's options.
func (cfg *config) newLease(o hold.Options, members ...*Lease) *Lease {
	return contender.NewLease(o, cfg.lossPolicy, cfg.revoked, members...)
}

// nodeData returns the data for the znode of c's attempt. by is the telemetry of the call.
func (cfg *config) nodeData(client *framework.Client, c caller, by *telemetry.Acquire) []byte {
	return cfg.attemptData(client, c, "", by)
}

// attemptData is nodeData with the id of the attempt.
func (cfg *config) attemptData(
	client *framework.Client, c caller, attempt string, by *telemetry.Acquire,
) []byte {
	switch {
	case cfg.noMetadata && cfg.data != nil:
		return cfg.data
	case cfg.noMetadata:
		return contender.LocalAddress()
	}
	if cfg.noTraceparent {
		by = nil
	}
	m := contender.Metadata(c.owner.String(), c.party(client), cfg.data, by)
	m.Attempt, m.Handoff = attempt, cfg.handoff
	return m.Encode()
}
