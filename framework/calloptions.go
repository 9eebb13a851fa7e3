package framework

import (
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework/acl"
)

// A CreateOption says how [Client.Create] creates.
type CreateOption interface{ applyCreate(*createConfig) }

// A SetOption says how [Client.Set] sets.
type SetOption interface{ applySet(*setConfig) }

// A DeleteOption says how [Client.Delete] deletes.
type DeleteOption interface{ applyDelete(*deleteConfig) }

// A createConfig has the values of the options of a create.
type createConfig struct {
	given createSet

	ttl   time.Duration
	acl   []acl.Entry // nil for the client's
	stat  *Stat
	lists []listTo
	watch **Watch
	epoch *int32           // gets its version; may be nil
	over  *<-chan struct{} // of DeletionTo; may be nil
}

type setConfig struct{ idempotent bool }

// tolerated returns the error that Set itself resolves.
func (cfg setConfig) tolerated() []error {
	if cfg.idempotent {
		return []error{ErrBadVersion}
	}
	return nil
}

type deleteConfig struct {
	version                int32
	czxid                  int64 // 0 for any
	epoch                  int32 // if atEpoch is set
	atEpoch                bool
	guaranteed, idempotent bool
	over                   *overHook // may be nil
}

func (cfg *deleteConfig) deletion(session int64, full string) deletion {
	return deletion{
		session: session, path: full, version: cfg.version, czxid: cfg.czxid,
		epoch: cfg.epoch, atEpoch: cfg.atEpoch, over: cfg.over,
	}
}

// validate returns all faults in the combination of options.
func (cfg *deleteConfig) validate() error {
	var faults []error
	if cfg.atEpoch && cfg.czxid == 0 {
		faults = append(faults, errors.New("option AtEpoch: must be combined with CreatedBy"))
	}
	if cfg.atEpoch && cfg.version != AnyVersion {
		faults = append(faults, errors.New("option AtEpoch: cannot be combined with AtVersion"))
	}
	if cfg.over != nil && cfg.over.fn == nil {
		faults = append(faults, errors.New("option WhenOver: the function must not be nil"))
	}
	return errors.Join(faults...)
}

// tolerated returns the error that Delete treats as success.
func (cfg *deleteConfig) tolerated() []error {
	if cfg.idempotent {
		return []error{ErrNoNode}
	}
	return nil
}

// applyAll calls apply with each option, and returns the faults of options that are nil.
func applyAll[O any](opts []O, apply func(O)) (faults error) {
	for i, opt := range opts {
		if any(opt) == nil {
			faults = errors.Join(faults, fmt.Errorf("option %d: must not be nil", i))
			continue
		}
		apply(opt)
	}
	return faults
}

type createOption func(*createConfig)

func (f createOption) applyCreate(cfg *createConfig) { f(cfg) }

// Ephemeral makes the server delete the znode when the client's session ends.
func Ephemeral() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withEphemeral })
}

// Sequential makes the server append ten digits to the path. They come from a counter of the
// parent, which grows while the parent has children.
func Sequential() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withSequential })
}

// Container makes a znode that the server removes once its last child is deleted.
func Container() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withContainer })
}

// TTL makes a znode that the server removes if it has had no children and no change for d. The
// servers' configuration must allow such znodes. d must lie between 1 ms and [MaxTTL].
func TTL(d time.Duration) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.ttl, cfg.given = d, cfg.given|withTTL })
}

// Protected makes Create find its znode again if the reply was lost. It puts "_c_", a random UUID
// and "-" before the name, as Curator does. A znode that is found counts only if it belongs to the
// client's present session. If Create fails nevertheless, the znode may exist or may still be
// created. The client then deletes it in the background until it is gone or its session has ended.
// Protected requires [Ephemeral].
func Protected() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withProtected })
}

// WithParents creates missing parents as containers, as Curator does. They include the parents in a
// chroot or namespace. If a parent is removed in the meantime, it is created again.
func WithParents() CreateOption {
	return createOption(func(cfg *createConfig) { cfg.given |= withParents })
}

// StatTo stores the new znode's Stat in st, as the creation left it.
func StatTo(st *Stat) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.stat = st })
}

type deleteOption func(*deleteConfig)

func (f deleteOption) applyDelete(cfg *deleteConfig) { f(cfg) }

// AtVersion deletes the znode only if its data has this version.
func AtVersion(version int32) DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.version = version })
}

// Guaranteed makes the client continue in the background. It does so if Delete could not find out
// that the znode is gone, for lack of a connection or because ctx ended. The client repeats the
// deletion until the znode is gone, its session has ended ([Client.InSession]), or the client is
// closed. Delete still returns the error. The znode is the one that the deletion finds first: in a
// view of any session the client reads it before. In a view of one session the client also repeats a
// deletion that failed with [ErrNoAuth], and logs that once.
func Guaranteed() DeleteOption {
	return deleteOption(func(cfg *deleteConfig) { cfg.guaranteed = true })
}

// Idempotent makes an operation succeed if it finds its effect already there, from an earlier
// attempt of its own or from another client:
//
//   - Create, if the znode exists with the same data, unchanged since its creation, and, if it is
//     [Ephemeral], in the client's session;
//   - Set, if the data is the same and its version is one more than the given version, or the given
//     version is [AnyVersion] and a reply was lost;
//   - Delete, if there is no znode.
//
// It does not report which client had the effect. If two clients set one version to the same data,
// both succeed.
func Idempotent() IdempotentOption { return IdempotentOption{} }

// An IdempotentOption is a [CreateOption], a [SetOption] and a [DeleteOption].
type IdempotentOption struct{}

func (IdempotentOption) applyCreate(cfg *createConfig) { cfg.given |= withIdempotent }
func (IdempotentOption) applySet(cfg *setConfig)       { cfg.idempotent = true }
func (IdempotentOption) applyDelete(cfg *deleteConfig) { cfg.idempotent = true }
