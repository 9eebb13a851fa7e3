package semaphore

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/permits"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/lease"
)

// An Option configures a semaphore. [New] reports all faulty options at once.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

type config struct {
	permitsAt  string
	data       []byte
	noMetadata bool
	lossPolicy lease.LossPolicy
	position   func(int)
	acl        []acl.Entry
	name       string
	faults     []error
}

// WithPermitsAt takes the number of permits from the znode at path, which holds 4 bytes, big endian,
// as Curator's SharedCount writes them. If the znode is missing, it is created with New's number. A
// smaller number takes no permit from a holder; a greater one wakes the contender that waits. A
// server that lags behind its leader may show an earlier number. A call costs one read more.
func WithPermitsAt(path string) Option {
	return optionFunc(func(cfg *config) {
		cfg.permitsAt = path
		if err := framework.ValidatePath(path); err != nil {
			cfg.faults = append(cfg.faults, fmt.Errorf("permits at: %w", err))
		}
	})
}

// WithData sets the data that [lease.Participant] shows. With [WithoutMetadata] it is all that the
// contenders' znodes hold: Curator's nodeData.
func WithData(data []byte) Option {
	return optionFunc(func(cfg *config) { cfg.data = append([]byte{}, data...) })
}

// WithoutMetadata omits the metadata from the contenders' znodes: host, process and time (see
// [lease.Metadata]). The znodes then hold the same as Curator's: the data of [WithData], or the
// host's IP address as text.
func WithoutMetadata() Option {
	return optionFunc(func(cfg *config) { cfg.noMetadata = true })
}

// WithLossPolicy says when a lease is lost while there is no connection. The default is
// [lease.AtDeadline].
func WithLossPolicy(policy lease.LossPolicy) Option {
	return optionFunc(func(cfg *config) { cfg.lossPolicy = policy })
}

// WithACL sets the ACL of the semaphore's znodes and of parents that are created for them. The
// default is the client's.
func WithACL(list ...acl.Entry) Option {
	return optionFunc(func(cfg *config) { cfg.acl = boundary.ACL(list, &cfg.faults) })
}

// WithName sets a name for the semaphore in telemetry, because metrics have no paths.
func WithName(name string) Option { return optionFunc(func(cfg *config) { cfg.name = name }) }

// WithQueuePosition calls fn with the number of contenders ahead while Acquire waits: whenever the
// call sees a change, and with 0 at the grant. The holders count as one. The number can also grow,
// for example if the session ended and the call queues again. A goroutine in Acquire calls fn, which
// delays it. The calls of one attempt are sequential.
func WithQueuePosition(fn func(position int)) Option {
	return optionFunc(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("queue position: the function must not be nil"))
		}
		cfg.position = fn
	})
}

// newConfig returns the configuration, or all faults of New's arguments.
func newConfig(c *framework.Client, path string, number int, opts []Option) (config, error) {
	cfg := config{lossPolicy: lease.AtDeadline}
	var faults []error
	if number < 1 || number > math.MaxInt32 {
		faults = append(faults, fmt.Errorf("permits %d: must be between 1 and %d", number, math.MaxInt32))
	}
	faults = append(faults, boundary.Apply(opts, func(o Option) { o.apply(&cfg) })...)
	if dir := permits.LeasesDir(path); cfg.permitsAt == dir || strings.HasPrefix(cfg.permitsAt, dir+"/") {
		faults = append(faults, fmt.Errorf("permits at %s: must not be in %s, whose children count as permits", cfg.permitsAt, dir))
	}
	faults = append(append(contender.Faults(c, path, cfg.lossPolicy), faults...), cfg.faults...)
	return cfg, errors.Join(faults...)
}

// nodeData returns the data of the znodes of an attempt. by is the telemetry of its call, owner and
// party are those of its caller.
func (cfg *config) nodeData(owner, party string, by *telemetry.Acquire) []byte {
	switch {
	case cfg.noMetadata && cfg.data != nil:
		return cfg.data
	case cfg.noMetadata:
		return contender.LocalAddress()
	}
	return contender.Metadata(owner, party, cfg.data, by).Encode()
}
