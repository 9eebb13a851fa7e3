package zktest

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// DefaultTickTime is a quarter of ZooKeeper's own: everything that a test
	// waits for is counted in ticks, and shorter ones make a busy machine look
	// like a dead one.
	DefaultTickTime = 500 * time.Millisecond

	// DefaultMinSessionTimeout is two ticks, the least that the server's
	// bookkeeping in ticks can tell apart.
	DefaultMinSessionTimeout = 2 * DefaultTickTime

	// DefaultMaxSessionTimeout is far above any test's session.
	DefaultMaxSessionTimeout = time.Minute

	// DefaultSyncLimit is how many ticks a member of an ensemble that hears
	// nothing from its leader, or a leader from its followers, goes on.
	DefaultSyncLimit = 10

	// DefaultContainerInterval is how often empty containers and overdue TTL nodes
	// are looked for: ZooKeeper's own minute is no use to a test.
	DefaultContainerInterval = 300 * time.Millisecond

	// DefaultLogLevel tells what went wrong in a server, and little else.
	DefaultLogLevel = "WARN"
)

// An Option configures a [Server] or the members of an [Ensemble].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// A setting is a line of the server's configuration file.
type setting struct{ key, value string }

// A config is what the options have recorded.
type config struct {
	tick              time.Duration
	minSession        time.Duration // 0: two ticks
	maxSession        time.Duration
	syncLimit         int
	containerInterval time.Duration
	fsync             bool
	logLevel          string
	settings          []setting
	jvmFlags          []string
	namespaces        bool
	observers         int
	observerMasters   bool
	sequences         []sequence
}

func newConfig(opts []Option) (config, error) {
	cfg := config{
		tick:              DefaultTickTime,
		maxSession:        DefaultMaxSessionTimeout,
		syncLimit:         DefaultSyncLimit,
		containerInterval: DefaultContainerInterval,
		logLevel:          DefaultLogLevel,
	}
	for _, opt := range opts {
		if opt == nil {
			return config{}, errors.New("zktest: option nil: must be one of the With functions' results")
		}
		opt.apply(&cfg)
	}
	if cfg.minSession == 0 {
		cfg.minSession = 2 * cfg.tick
	}
	return cfg, cfg.validate()
}

func (c config) validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("zktest: "+format, args...))
	}
	if c.tick < time.Millisecond {
		fault("tick time %v: must be at least 1ms", c.tick)
	}
	if c.minSession < time.Millisecond {
		fault("least session timeout %v: must be at least 1ms", c.minSession)
	}
	if c.maxSession < c.minSession {
		fault("greatest session timeout %v: must be at least the least one, %v", c.maxSession, c.minSession)
	}
	if c.syncLimit < 1 {
		fault("sync limit %d: must be at least 1 tick", c.syncLimit)
	}
	if c.containerInterval < time.Millisecond {
		fault("container interval %v: must be at least 1ms", c.containerInterval)
	}
	switch c.logLevel {
	case "DEBUG", "INFO", "WARN", "ERROR":
	default:
		fault("log level %q: must be DEBUG, INFO, WARN or ERROR", c.logLevel)
	}
	for _, s := range c.settings {
		if s.key == "" || strings.ContainsAny(s.key, "=\n") || strings.Contains(s.value, "\n") {
			fault("setting %q with value %q: must be one line key=value", s.key, s.value)
		}
	}
	if c.observers < 0 {
		fault("observers %d: must not be negative", c.observers)
	}
	if c.observerMasters && !c.namespaces {
		fault("observer masters: need WithNamespaces, because all listen at one port")
	}
	for _, s := range c.sequences {
		if !s.valid() {
			fault("sequence of %q from %d: must be of a full path and from at least 1", s.path, s.next)
		}
	}
	return errors.Join(faults...)
}

// WithTickTime sets the server's unit of time, in whole milliseconds. The
// default is [DefaultTickTime].
func WithTickTime(d time.Duration) Option {
	return optionFunc(func(c *config) { c.tick = d })
}

// WithSessionTimeouts sets the bounds between which session timeouts are
// negotiated, in whole milliseconds. The defaults are two ticks and
// [DefaultMaxSessionTimeout].
func WithSessionTimeouts(least, greatest time.Duration) Option {
	return optionFunc(func(c *config) { c.minSession, c.maxSession = least, greatest })
}

// WithSyncLimit sets how many ticks the members of an ensemble continue without a message from
// each other. The default is [DefaultSyncLimit].
func WithSyncLimit(ticks int) Option {
	return optionFunc(func(c *config) { c.syncLimit = ticks })
}

// WithContainerInterval sets how often empty containers and overdue TTL nodes are
// looked for, in whole milliseconds. The default is [DefaultContainerInterval].
func WithContainerInterval(d time.Duration) Option {
	return optionFunc(func(c *config) { c.containerInterval = d })
}

// WithFsync makes the server wait for the disk before it answers a write, as it
// does in production. Without it a write is as durable as the machine, which
// outlasts any server that a test kills; benchmarks want it.
func WithFsync() Option {
	return optionFunc(func(c *config) { c.fsync = true })
}

// WithLogLevel sets how much the server logs: DEBUG, INFO, WARN or ERROR. The
// default is [DefaultLogLevel].
func WithLogLevel(level string) Option {
	return optionFunc(func(c *config) { c.logLevel = level })
}

// WithSetting adds a line to the server's configuration file (zoo.cfg). It wins
// over what the package itself writes there. The server gets the value as it is:
// what the file's format wants escaped is.
func WithSetting(key, value string) Option {
	return optionFunc(func(c *config) { c.settings = append(c.settings, setting{key, value}) })
}

// WithJVMFlags adds flags to Java's command line, system properties
// (-Dname=value) among them, after the package's own.
func WithJVMFlags(flags ...string) Option {
	return optionFunc(func(c *config) { c.jvmFlags = append(c.jvmFlags, flags...) })
}

// WithNamespaces gives each member of an ensemble a network namespace of its own, with a link to
// each other member and one to its clients. Cuts then drop packets, as a real network does. It
// needs Linux and privileges: see [Namespaces]. It has no effect on a standalone server. The
// default is forwarders, which need nothing.
func WithNamespaces() Option {
	return optionFunc(func(c *config) { c.namespaces = true })
}

// WithObservers adds n observers to an ensemble: servers that have no vote, and learn from the leader
// what the others have decided. They come last in [Ensemble.Servers]. With the members that vote
// there may be 7 in all. It has no effect on a standalone server. The default is none.
func WithObservers(n int) Option {
	return optionFunc(func(c *config) { c.observers = n })
}

// WithObserverMasters has the observers of [WithObservers] learn from followers, which are then called
// observer masters, and not from the leader. What a client's ping tells the leader then takes one
// more tick to arrive. It needs [WithNamespaces].
func WithObserverMasters() Option {
	return optionFunc(func(c *config) { c.observerMasters = true })
}
