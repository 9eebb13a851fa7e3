package lock

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/lease"
)

// An Option configures a lock. The constructor reports all faulty options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

// What package lease has, under the names of this package's users.
type (
	// A Lease is a share in a held lock: what one call of Lock or TryLock returned.
	Lease = lease.Lease
	// A LostError says that a lease was lost, and why.
	LostError = lease.LostError
	// A LossPolicy says when a lease is lost while there is no connection.
	LossPolicy = lease.LossPolicy
	// A Participant is one contender of a lock: its holder or one that waits.
	Participant = lease.Participant
	// A WaitError says why a wait for a lock ended without the lock.
	WaitError = lease.WaitError
	// Metadata is what a contender's znode tells about who made it.
	Metadata = lease.Metadata
)

// The policies of a loss.
const (
	// AtDeadline keeps a lease until its session's deadline. It is the default.
	AtDeadline = lease.AtDeadline
	// OnSuspend ends a lease as soon as the connection breaks.
	OnSuspend = lease.OnSuspend
)

type config struct {
	data          []byte
	noMetadata    bool
	noTraceparent bool
	lossPolicy    LossPolicy
	revoked       func(*Lease)
	position      func(int)
	acl           []framework.ACL
	name          string
	faults        []error
}

// WithData sets data for the lock's znodes, that [Participant.Data] shows. With
// [WithoutMetadata] it is all they hold.
func WithData(data []byte) Option {
	return optionFunc(func(cfg *config) { cfg.data = append([]byte{}, data...) })
}

// WithoutMetadata leaves the metadata out of the lock's znodes: owner, host, process and time of who
// made them (see [Metadata]). They hold what Curator's do then: the data of [WithData], or the host's
// IP address as text.
func WithoutMetadata() Option {
	return optionFunc(func(cfg *config) { cfg.noMetadata = true })
}

// WithoutTraceparent leaves the traceparent out of the metadata in the lock's znodes. By default it
// leads to the trace of the call that made a znode, as W3C Trace Context writes it, if a span records
// that call: the spans of those that wait for it are linked to it then, in whatever process they are.
func WithoutTraceparent() Option {
	return optionFunc(func(cfg *config) { cfg.noTraceparent = true })
}

// WithLossPolicy says when a lease counts as lost while there is no connection.
// The default is [AtDeadline].
func WithLossPolicy(policy LossPolicy) Option {
	return optionFunc(func(cfg *config) { cfg.lossPolicy = policy })
}

// WithACL sets the ACL of the lock's znodes and of parents that are created for
// them. The default is the client's.
func WithACL(acl ...framework.ACL) Option {
	return optionFunc(func(cfg *config) {
		if len(acl) == 0 {
			cfg.faults = append(cfg.faults, errors.New("ACL: must have at least one entry"))
		}
		cfg.acl = append([]framework.ACL(nil), acl...)
	})
}

// WithName sets a name for the lock in telemetry, where paths don't go.
func WithName(name string) Option {
	return optionFunc(func(cfg *config) { cfg.name = name })
}

// WithQueuePosition has fn told how many contenders stand ahead while Lock
// waits, whenever that is seen to have changed, and 0 at the grant. It costs no
// request: much of what changes further ahead than what the lock waits for stays unseen. The number
// can also grow, as when the session ended and the lock had to queue again. fn
// is called by a goroutine that is in Lock, and delays it; calls of one attempt
// follow one another.
func WithQueuePosition(fn func(position int)) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("queue position: the function must not be nil"))
		}
		cfg.position = fn
	})
}

// newConfig returns the configuration of a lock, or all that is wrong with the
// arguments of its constructor.
func newConfig(kind string, c *framework.Client, path string, opts []Option) (config, error) {
	cfg := config{lossPolicy: AtDeadline}
	var faults []error
	for i, opt := range opts {
		if opt == nil {
			faults = append(faults, fmt.Errorf("option %d: must not be nil", i))
			continue
		}
		opt.apply(&cfg)
	}
	faults = append(contender.Faults(c, path, cfg.lossPolicy), faults...)
	if len(faults)+len(cfg.faults) == 0 {
		return cfg, nil
	}
	return config{}, opError("new "+kind, path, errors.Join(append(faults, cfg.faults...)...))
}

// newLease returns the first lease of a new hold, which keeps to the options.
func (cfg *config) newLease(o hold.Options, members ...*Lease) *Lease {
	return contender.NewLease(o, cfg.lossPolicy, cfg.revoked, members...)
}
