package zkenv

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// An Option configures [ForEach].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

type config struct {
	kinds     []Kind
	breakable bool
	elsewhere bool     // the test runs in no environment that realVariable allows
	versions  []string // to draw the version of an embedded server from
	limits    []limit
}

// A limit is one use of Only.
type limit struct {
	reason string
	kinds  []Kind
}

// Only restricts the test to some environments, for a reason that is logged, and
// must not be empty. Where it is given more than once, the environments are those that all
// allow. The default is all environments.
func Only(reason string, kinds ...Kind) Option {
	return optionFunc(func(cfg *config) { cfg.limits = append(cfg.limits, limit{reason, kinds}) })
}

// Versions restricts which versions an embedded server of the test may have, as DrawVersion draws them,
// for a reason that is logged if ZK_EMBEDDED asks for another: then the test is skipped there. It has
// no effect on real servers. The default is those of DrawVersion.
func Versions(reason string, versions ...string) Option {
	return optionFunc(func(cfg *config) {
		cfg.limits = append(cfg.limits, limit{reason, allKinds()})
		cfg.versions = versions
	})
}

// Breakable gives the test a server or an ensemble of its own, so that it may freeze
// and isolate its members. For the real environments that costs seconds. The
// default is that all tests of a package share the real ones.
func Breakable() Option { return optionFunc(func(cfg *config) { cfg.breakable = true }) }

// realVariable names the environment variable that says in which of the real environments a test
// runs, and that it runs in no other. If it is "one", a test runs on the standalone server, or on the ensemble
// if Only excludes that server. If it is "standalone" or "ensemble", a test runs on that. A test that may run
// in none is skipped. The default is all environments.
const realVariable = "ZK_REAL"

// newConfig returns the configuration, or all that is wrong with the options.
func newConfig(opts []Option) (config, error) {
	cfg := config{kinds: allKinds()}
	var faults []error
	for i, opt := range opts {
		if opt == nil {
			faults = append(faults, fmt.Errorf("zkenv: option %d: must not be nil", i))
			continue
		}
		opt.apply(&cfg)
	}
	for _, l := range cfg.limits {
		if l.reason == "" {
			faults = append(faults, errors.New("zkenv: only: the reason must not be empty"))
		}
		for _, k := range l.kinds {
			if !slices.Contains(allKinds(), k) {
				faults = append(faults, fmt.Errorf("zkenv: only: %v: must be one of the package's constants", k))
			}
		}
		cfg.kinds = slices.DeleteFunc(cfg.kinds, func(k Kind) bool { return !slices.Contains(l.kinds, k) })
	}
	cfg.restrict()
	if len(cfg.kinds) == 0 && !cfg.elsewhere {
		faults = append(faults, errors.New("zkenv: only: must leave at least one environment"))
	}
	return cfg, errors.Join(faults...)
}

// restrict leaves the environments that realVariable allows.
func (cfg *config) restrict() {
	if len(cfg.kinds) == 0 {
		return
	}
	where := os.Getenv(realVariable)
	if where == "one" {
		where = Ensemble.String()
		if slices.Contains(cfg.kinds, Standalone) {
			where = Standalone.String()
		}
	}
	if where == Standalone.String() || where == Ensemble.String() {
		cfg.kinds = slices.DeleteFunc(cfg.kinds, func(k Kind) bool { return k.String() != where })
		cfg.elsewhere = len(cfg.kinds) == 0
	}
}
