package locktest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
)

// An Option tells [Run] what the lock under test promises beyond [lock.Locker].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

type config struct {
	rival     NewLocker // excludes the lock under test
	shared    bool
	permits   int // how many owners may share; 0 for any number
	fair      bool
	reentrant bool
	noTry     bool
	faults    bool // only
	envs      []zkenv.Option
}

// Fair says that grants go in the order in which the lock was asked for.
func Fair() Option { return optionFunc(func(cfg *config) { cfg.fair = true }) }

// Reentrant says that an owner (see [lock.Owner]) that has the lock gets further leases of
// it, and that the lock is given back with the last.
func Reentrant() Option { return optionFunc(func(cfg *config) { cfg.reentrant = true }) }

// NoTry says that the lock has no TryLock, as an election of package leader has none: nothing is
// checked of TryLock, and it is never called.
func NoTry() Option { return optionFunc(func(cfg *config) { cfg.noTry = true }) }

// Shared says that any number of owners can hold the lock at the same time, as the read side of a
// read/write lock does. It also says that a lock of rival at the same path excludes them all, and
// is excluded by each. The default is that the lock excludes itself.
func Shared(rival NewLocker) Option {
	return optionFunc(func(cfg *config) { cfg.shared, cfg.rival = true, rival })
}

// Permits says that n owners can hold the lock at the same time, as permits of a semaphore. A lock
// of all at the same path takes all n permits at once.
func Permits(n int, all NewLocker) Option {
	return optionFunc(func(cfg *config) { cfg.shared, cfg.rival, cfg.permits = true, all, n })
}

// Behind says which lock at the same path other clients hold where the lock under test has to wait.
// It excludes the lock under test. The default is the lock under test itself.
func Behind(rival NewLocker) Option {
	return optionFunc(func(cfg *config) { cfg.rival = rival })
}

// FaultsOnly restricts the promises to those about faults that meet each request of an acquire and
// release. It is for variants of a lock whose other promises have been checked.
func FaultsOnly() Option { return optionFunc(func(cfg *config) { cfg.faults = true }) }

// In restricts the environments in which the tests run, by [zkenv.Only]. The default is all.
func In(opts ...zkenv.Option) Option {
	return optionFunc(func(cfg *config) { cfg.envs = append(cfg.envs, opts...) })
}

// newConfig returns the configuration, or all that is wrong with Run's arguments.
func newConfig(newLocker NewLocker, opts []Option) (config, error) {
	cfg := config{rival: newLocker}
	var faults []error
	if newLocker == nil {
		faults = append(faults, errors.New("locktest: newLocker: must not be nil"))
	}
	for i, opt := range opts {
		if opt == nil {
			faults = append(faults, fmt.Errorf("locktest: option %d: must not be nil", i))
			continue
		}
		opt.apply(&cfg)
	}
	if cfg.noTry && newLocker != nil {
		cfg.rival = patient(newLocker)
	}
	if cfg.shared && cfg.noTry {
		faults = append(faults, errors.New("locktest: shared: can't be checked with no try"))
	}
	if cfg.permits < 0 {
		faults = append(faults, fmt.Errorf("locktest: permits %d: must be at least 1", cfg.permits))
	}
	if newLocker != nil && cfg.rival == nil {
		faults = append(faults, errors.New("locktest: rival: must not be nil"))
	}
	if cfg.shared && cfg.fair {
		faults = append(faults, errors.New("locktest: fair: can't be checked with shared, whose owners are granted together"))
	}
	return cfg, errors.Join(faults...)
}

// A patientLocker is a lock without TryLock: its TryLock is a Lock that waits a while.
type patientLocker struct{ lock.Locker }

// patience is how long a patientLocker waits for a lock that may be free, on a machine as slow as it
// may be.
const patience = 3 * time.Second

// patient returns what makes the locks of newLocker with a TryLock that can be called.
func patient(newLocker NewLocker) NewLocker {
	return func(t testing.TB, c *framework.Client, path string) lock.Locker {
		t.Helper()
		return patientLocker{newLocker(t, c, path)}
	}
}

// TryLock returns ErrHeld if the lock can't be had within patience.
func (p patientLocker) TryLock(ctx context.Context) (*lock.Lease, error) {
	brief, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lease, err := p.Lock(brief)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, lock.ErrHeld
	}
	return lease, err
}
