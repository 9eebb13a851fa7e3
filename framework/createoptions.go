package framework

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/proto"
)

// A CreateOption says how [Client.Create] creates.
type CreateOption interface{ applyCreate(*createConfig) }

// A createConfig has the values of the options of a create.
type createConfig struct {
	given createSet

	ttl   time.Duration
	acl   []acl.Entry // nil for the client's
	stat  *Stat
	lists []listTo
	epoch *int32    // gets its version; may be nil
	over  *overHook // of WhenOver; may be nil
}

type createOption func(*createConfig)

func (f createOption) applyCreate(cfg *createConfig) { f(cfg) }

// Ephemeral makes the server delete the znode when the client's session ends.
func Ephemeral() CreateOption { return withEphemeral }

// Sequential makes the server append ten digits to the path. They come from a counter of the
// parent, which grows while the parent has children.
func Sequential() CreateOption { return withSequential }

// Container makes a znode that the server removes once its last child is deleted.
func Container() CreateOption { return withContainer }

// TTL makes a znode that the server removes if it has had no children and no change for d. The
// servers' configuration must allow such znodes. d must lie between 1 ms and 34 years.
func TTL(d time.Duration) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.ttl, cfg.given = d, cfg.given|withTTL })
}

// StatTo stores the new znode's Stat in st, as the creation left it. If the reply to a create that is
// [Protected] is lost, and its ACL does not let the client read the znode, Create returns [ErrNoAuth] on
// ZooKeeper 3.8.4, 3.9.2 and newer, and deletes the znode.
func StatTo(st *Stat) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.stat = st })
}

// ListTo lists the children of dir right after the create, within the same round trip; "" means
// the parent. It stores their names as they were at a moment after the creation, none if dir does not
// exist. It stores nil if there is no listing, as when the znode was found again after its reply was
// lost; list the children then. Several may be given. They are one request.
func ListTo(dir string, names *[]string) CreateOption {
	return createOption(func(cfg *createConfig) {
		if names != nil {
			cfg.lists = append(cfg.lists, listTo{dir, names})
			cfg.given |= withList
		}
	})
}

// A listTo is a directory to be listed after the create.
type listTo struct {
	dir   string // "" for the parent
	names *[]string
}

// A createSet is a set of options of a create. It is an option, too, which adds the set to what is given.
type createSet uint

func (set createSet) applyCreate(cfg *createConfig) { cfg.given |= set }

const (
	withEphemeral createSet = 1 << iota
	withSequential
	withContainer
	withTTL
	withProtected
	withSession // see [KnownBySession]
	withEpoch
	withList
	withWhenOver
	withPatience // see [UntilKnown]
	withParents
	withACL
	withIdempotent
)

// has reports whether one of the options is given.
func (cfg *createConfig) has(options createSet) bool { return cfg.given&options != 0 }

// combined returns all faults in the combination of the options.
func (cfg *createConfig) combined() error {
	var faults []error // mostly none, which allocates nothing
	if err := cfg.over.fault(); err != nil {
		faults = append(faults, err)
	}
	for _, rule := range [...]struct {
		option, needs, excludes createSet
		fault                   string
	}{
		{
			option: withContainer, excludes: withEphemeral | withSequential | withTTL,
			fault: "option Container: cannot be combined with Ephemeral, Sequential or TTL",
		},
		{option: withTTL, excludes: withEphemeral, fault: "option TTL: cannot be combined with Ephemeral"},
		{option: withProtected, needs: withEphemeral, fault: "option Protected: must be combined with Ephemeral"},
		{
			option: withSession, needs: withEphemeral, excludes: withSequential | withProtected | withIdempotent,
			fault: "option KnownBySession: must be combined with Ephemeral, " +
				"and with none of Sequential, Protected and Idempotent",
		},
		{
			option: withEpoch, needs: withSession, excludes: withList,
			fault: "option WithEpoch: must be combined with KnownBySession, and not with ListTo",
		},
		{
			option: withIdempotent, excludes: withSequential | withProtected,
			fault: "option Idempotent: cannot be combined with Sequential or Protected",
		},
	} {
		if cfg.has(rule.option) && (cfg.given&rule.needs != rule.needs || cfg.has(rule.excludes)) {
			faults = append(faults, errors.New(rule.fault))
		}
	}
	if cfg.has(withWhenOver|withPatience) && !cfg.has(withProtected|withSession) {
		faults = append(faults, errors.New("options WhenOver and UntilKnown: must be combined with Protected or KnownBySession"))
	}
	return errors.Join(faults...)
}

func (cfg *createConfig) validate(path string) error {
	// A sequential path may end in a slash: then the number is the whole name.
	if cfg.has(withSequential) && len(path) > 1 && path[len(path)-1] == '/' {
		path += "0"
	}
	err := errors.Join(ValidatePath(path), cfg.combined())
	for _, l := range cfg.lists {
		if l.dir != "" {
			err = errors.Join(err, ValidatePath(l.dir))
		}
	}
	if cfg.has(withTTL) && (cfg.ttl < time.Millisecond || cfg.ttl > maxTTL) {
		err = errors.Join(err, fmt.Errorf("option TTL %v: must be between 1ms and %v", cfg.ttl, maxTTL))
	}
	return err
}

// maxTTL is the longest time that a server keeps a znode created with [TTL]: as many milliseconds
// as 40 bits hold.
const maxTTL = (1<<40 - 1) * time.Millisecond

func (cfg *createConfig) flags() int32 {
	switch {
	case cfg.has(withTTL) && cfg.has(withSequential):
		return proto.FlagTTLSequential
	case cfg.has(withTTL):
		return proto.FlagTTL
	case cfg.has(withContainer):
		return proto.FlagContainer
	}
	var flags int32
	if cfg.has(withEphemeral) {
		flags |= proto.FlagEphemeral
	}
	if cfg.has(withSequential) {
		flags |= proto.FlagSequential
	}
	return flags
}
