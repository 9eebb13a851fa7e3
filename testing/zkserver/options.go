package zkserver

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkversion"
)

const (
	// DefaultTick is ZooKeeper's default tickTime.
	DefaultTick = 2 * time.Second

	// DefaultPacketLimit is ZooKeeper's default jute.maxbuffer, one byte short of
	// 1 MiB.
	DefaultPacketLimit = 1<<20 - 1

	// DefaultReapInterval is ZooKeeper's default znode.container.checkIntervalMs.
	DefaultReapInterval = time.Minute

	// maxFrontends keeps addresses within 192.0.2.0/24.
	maxFrontends = 100

	// DefaultSyncLimit is the syncLimit of ZooKeeper's sample configuration, in ticks.
	DefaultSyncLimit = 5

	// byTick is the least session timeout until the default is filled in.
	byTick time.Duration = math.MinInt64

	// noLeader is the number of no front end.
	noLeader = -1
)

// An Option configures a [Server].
type Option interface{ apply(*config) }

type config struct {
	tick                   time.Duration
	minTimeout, maxTimeout time.Duration
	packetLimit            int
	reapInterval           time.Duration
	frontends              int
	leader                 int // which of them leads at first; noLeader if none ever does
	syncLimit              int // in ticks
	wrap                   bool
	seed                   uint64
	commitTime             time.Duration
	observer               func(Transaction) // nil for none
	readOnly               bool              // front ends without a leader serve reads
	localSessions          bool              // and begin sessions for that
	versionText            string
	version                zkversion.Version // what versionText says
	behaves                map[zkversion.Behavior]bool
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithTick sets the server's tick, from which the bounds of session timeouts follow.
// It must be at least a millisecond. The default is DefaultTick.
func WithTick(d time.Duration) Option { return option(func(c *config) { c.tick = d }) }

// WithSessionTimeouts sets the bounds between which a session's timeout is
// negotiated. Both must be at least a millisecond, and lowest not above highest. The
// default is 2 and 20 ticks.
func WithSessionTimeouts(lowest, highest time.Duration) Option {
	return option(func(c *config) { c.minTimeout, c.maxTimeout = lowest, highest })
}

// WithPacketLimit sets the length of the longest frame, in bytes, that a client may
// send: a longer one closes the connection. It must be at least 1024. The default is
// DefaultPacketLimit.
func WithPacketLimit(n int) Option { return option(func(c *config) { c.packetLimit = n }) }

// WithReapInterval sets how often the server looks for empty containers and old TTL
// nodes. It must be at least a millisecond. The default is DefaultReapInterval.
func WithReapInterval(d time.Duration) Option { return option(func(c *config) { c.reapInterval = d }) }

// WithFrontends makes the server an ensemble with n front ends, 1 to 100. With more than one, the
// leader is a further member that no client connects to, and zxids begin with epoch 1. A front end
// reports to the leader twice in a tick which clients are alive. The default is 1: a standalone
// server.
func WithFrontends(n int) Option { return option(func(c *config) { c.frontends = n }) }

// WithLeader has front end number i lead the ensemble at first, instead of a further
// member. The ensemble then works as far as a majority of its front ends is neither
// frozen nor isolated: see the package's documentation on elections. i must be the
// number of a front end, of which there must be at least 2.
func WithLeader(i int) Option { return option(func(c *config) { c.leader = i }) }

// WithSyncLimit sets how many ticks a front end continues without its leader. A leader without a
// majority of the front ends continues for one tick more. The limit must be at least 1. The
// default is DefaultSyncLimit. It has no effect without [WithLeader].
func WithSyncLimit(ticks int) Option { return option(func(c *config) { c.syncLimit = ticks }) }

// WithSequenceWrap lets sequence numbers go on with -2147483648 after 2147483647, as
// ZooKeeper's documentation has it. The default is what ZooKeeper 3.8 does: creations
// that are outstanding together get 2147483647, then -2147483648 and so on, and later
// ones 2147483647 again. See [WithCommitTime].
func WithSequenceWrap() Option { return option(func(c *config) { c.wrap = true }) }

// WithCommitTime sets how long the leader takes to commit what it has decided, as a real
// one that waits for its disk and its followers. Requests that arrive meanwhile are
// decided on with the others outstanding, which shows in the sequence numbers past
// 2147483647. It must not be negative. The default is 0: nothing is ever outstanding.
func WithCommitTime(d time.Duration) Option { return option(func(c *config) { c.commitTime = d }) }

// WithSeed decides what ZooKeeper leaves open and no client may rely on. That is the order in
// which a session's ephemeral znodes are deleted, and watchers notified, when the session ends.
// The same seed gives the same order of the same paths. The default is 0.
func WithSeed(seed uint64) Option { return option(func(c *config) { c.seed = seed }) }

// DefaultVersion is the version of ZooKeeper whose behavior a server has unless [WithVersion] sets
// another: Debian 12's 3.8.0, which filters events.
const DefaultVersion = "3.8.0+deb12u2"

// WithVersion sets the version of ZooKeeper whose behavior the server has, where versions differ in
// what a client can see: which operations there are, whether exists needs permission to read, whether
// events are filtered and what is in their heads, how watches of one path get along. The version is
// written as in "3.8.4", and must be 3.6.0 or newer. The default is DefaultVersion.
func WithVersion(version string) Option { return option(func(c *config) { c.versionText = version }) }

// newConfig applies and checks the options, and fills in what follows from others.
func newConfig(opts []Option) (config, error) {
	c := config{
		tick:         DefaultTick,
		minTimeout:   byTick,
		packetLimit:  DefaultPacketLimit,
		reapInterval: DefaultReapInterval,
		frontends:    1,
		leader:       noLeader,
		syncLimit:    DefaultSyncLimit,
		versionText:  DefaultVersion,
	}
	for _, o := range opts {
		o.apply(&c)
	}
	if c.minTimeout == byTick {
		c.minTimeout, c.maxTimeout = 2*c.tick, 20*c.tick
	}
	return c, c.validate()
}

func (c *config) validate() error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("zkserver: "+format, args...))
	}
	if c.tick < time.Millisecond {
		refuse("tick %v: must be at least 1ms", c.tick)
	}
	if c.minTimeout < time.Millisecond || c.maxTimeout < c.minTimeout {
		refuse("session timeouts %v to %v: must be at least 1ms and in order", c.minTimeout, c.maxTimeout)
	}
	if c.packetLimit < 1024 {
		refuse("packet limit %d: must be at least 1024", c.packetLimit)
	}
	if c.reapInterval < time.Millisecond {
		refuse("reap interval %v: must be at least 1ms", c.reapInterval)
	}
	if c.frontends < 1 || c.frontends > maxFrontends {
		refuse("frontends %d: must be 1 to %d", c.frontends, maxFrontends)
	}
	if c.leader != noLeader && (c.leader < 0 || c.leader >= c.frontends || c.frontends < 2) {
		refuse("leader %d: must be the number of one of 2 or more front ends, there are %d", c.leader, c.frontends)
	}
	var err error
	if c.version, err = zkversion.Parse(c.versionText); err != nil {
		refuse("%w", err)
	} else if c.version.Compare(zkversion.Must("3.6.0")) < 0 {
		refuse("version %q: must be 3.6.0 or newer", c.versionText)
	}
	c.behaves = c.version.Behaviors()
	if c.commitTime < 0 {
		refuse("commit time %v: must be at least 0", c.commitTime)
	}
	if c.syncLimit < 1 {
		refuse("sync limit %d: must be at least 1 tick", c.syncLimit)
	}
	if c.readOnly && c.leader == noLeader {
		refuse("read-only mode: needs a leader among the front ends")
	}
	return errors.Join(faults...)
}

// knows reports whether the server has the operation.
func (c *config) knows(op proto.Opcode) bool { return isKnown(op) && c.version.Knows(op) }

// has reports whether a server of the version behaves so.
func (c *config) has(b zkversion.Behavior) bool { return c.behaves[b] }
