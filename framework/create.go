package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkpath"
)

// Create creates a znode with the data, as the options say, and returns its path. With [Sequential]
// or [Protected] the path differs from the given path. As in all writes, nil is an empty array and
// not null, which Curator's recipes can't read.
//
// Create is retried by the client's policy until ctx ends; a request that was never sent is always
// sent again. If the reply to an attempt was lost, Create looks for the znode if it is [Protected].
// If it is only [Sequential], Create returns [ErrUnknownOutcome], because a second znode could
// result. Otherwise Create repeats the request only if the first attempt certainly had no effect: no
// child of the parent was created or deleted since. If not, the error wraps ErrUnknownOutcome. It
// also wraps [ErrNodeExists] if there is a znode, unless [Idempotent] resolves it.
//
// If ctx ends first, the error wraps ctx's error, and ErrUnknownOutcome if a request was sent.
// Other errors: [ErrNodeExists], [ErrNoNode] for a missing parent ([WithParents] creates it),
// [ErrNoAuth], [ErrNoChildrenForEphemerals], [ErrTooLarge], and the errors of
// every operation.
func (c *Client) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, error) {
	created, err := c.create(ctx, path, data, opts)
	if err != nil {
		return "", c.callError(ctx, "create", path, err)
	}
	return c.viewPath(created), nil
}

// create is Create on the path in the ensemble, without the wrapping of errors.
func (c *Client) create(ctx context.Context, path string, data []byte, opts []CreateOption) (string, error) {
	cr, err := c.newCreation(path, data, opts)
	if err != nil {
		return "", err
	}
	return cr.run(ctx)
}

// CheckCreate returns the error that [Client.Create] with these arguments returns before it sends
// anything, or nil. The error joins all faults of the arguments, [ErrTooLarge] included.
func (c *Client) CheckCreate(path string, data []byte, opts ...CreateOption) error {
	_, err := c.newCreation(path, data, opts)
	return c.opError("create", path, err)
}

// A creation is one call of Create.
type creation struct {
	createConfig

	core       *core
	session    int64 // the session that it is bound to, 0 for any
	path       string
	data       []byte // as the client sends it
	acls       []acl.Entry
	earlier    earlierAttempts
	parent     *session.Pending[requests.Created] // sent ahead of the next round of an attempt; nil for none
	protection *protection                        // nil without Protected and KnownBySession
}

func (c *Client) newCreation(path string, data []byte, opts []CreateOption) (*creation, error) {
	cr := &creation{core: c.core, session: c.session, data: c.core.cfg.pack(data)}
	faults := applyAll(opts, func(o CreateOption) { o.applyCreate(&cr.createConfig) })
	if err := errors.Join(faults, cr.validate(path)); err != nil {
		return nil, err
	}
	for i, l := range cr.lists {
		if l.dir != "" {
			cr.lists[i].dir = c.fullPath(l.dir)
		}
	}
	if cr.has(withProtected) {
		cr.protection = newProtection()
		path = cr.protection.name(path)
	}
	cr.path = c.pathToCreate(path, cr.has(withSequential))
	if cr.has(withSession) {
		cr.protection = &protection{claims: &c.core.claims}
	}
	if cr.over != nil && cr.protection != nil {
		cr.protection.storeIn = cr.over
		*cr.over = nil
	}
	if cr.epoch != nil {
		if zkpath.IsEpoch(cr.path) {
			return nil, fmt.Errorf("path %q: an epoch has no epoch", errtype.Shortened(path))
		}
		cr.protection.epoch = &epoch{path: zkpath.Epoch(cr.path)}
	}
	cr.acls = cr.aclOf(cr.path)
	return cr, errors.Join(validateACL("ACL", cr.acls), c.core.checkSize(cr.size()))
}

// pathToCreate returns the ensemble's path for a create in the view. A sequential znode of "/" is a child
// of the view's root, as one of the ensemble's root is.
func (c *Client) pathToCreate(path string, sequential bool) string {
	if sequential && path == "/" {
		return c.prefix + "/"
	}
	return c.fullPath(path)
}

// aclOf returns the ACL for the znode or for one of its parents.
func (cr *creation) aclOf(full string) []acl.Entry {
	if cr.has(withACL) {
		return cr.acl
	}
	if provider := cr.core.cfg.aclFor; provider != nil {
		if acl := provider(full); acl != nil {
			return acl
		}
	}
	return cr.core.cfg.acl
}

func (cr *creation) size() int {
	if cr.epoch != nil {
		size := headSize + multiOpSize
		for _, op := range cr.epochOps() {
			size += op.size()
		}
		return size
	}
	return createSize + len(cr.path) + len(cr.data) + aclSize(cr.acls)
}

func (cr *creation) validate(path string) error {
	// A sequential path may end in a slash: then the number is the whole name.
	if cr.has(withSequential) && len(path) > 1 && path[len(path)-1] == '/' {
		path += "0"
	}
	err := errors.Join(ValidatePath(path), cr.combined())
	for _, l := range cr.lists {
		if l.dir != "" {
			err = errors.Join(err, ValidatePath(l.dir))
		}
	}
	if cr.has(withTTL) && (cr.ttl < time.Millisecond || cr.ttl > maxTTL) {
		err = errors.Join(err, fmt.Errorf("option TTL %v: must be between 1ms and %v", cr.ttl, maxTTL))
	}
	return err
}

// maxTTL is the longest time that a server keeps a znode created with [TTL]: as many milliseconds
// as 40 bits hold.
const maxTTL = (1<<40 - 1) * time.Millisecond

func (cr *creation) flags() int32 {
	switch {
	case cr.has(withTTL) && cr.has(withSequential):
		return proto.FlagTTLSequential
	case cr.has(withTTL):
		return proto.FlagTTL
	case cr.has(withContainer):
		return proto.FlagContainer
	}
	var flags int32
	if cr.has(withEphemeral) {
		flags |= proto.FlagEphemeral
	}
	if cr.has(withSequential) {
		flags |= proto.FlagSequential
	}
	return flags
}

// A CreateOption says how [Client.Create] creates.
type CreateOption interface{ applyCreate(*createConfig) }

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
// servers' configuration must allow such znodes. d must lie between 1 ms and 34 years.
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

// StatTo stores the new znode's Stat in st, as the creation left it. If the reply to a create that is
// [Protected] is lost, and its ACL does not let the client read the znode, Create returns [ErrNoAuth] on
// ZooKeeper 3.8.4, 3.9.2 and newer, and deletes the znode.
func StatTo(st *Stat) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.stat = st })
}

// A createSet is a set of options of a create.
type createSet uint

const (
	withEphemeral createSet = 1 << iota
	withSequential
	withContainer
	withTTL
	withProtected
	withSession // see [KnownBySession]
	withEpoch
	withList
	withWatch
	withDeletion
	withPatience // see [UntilKnown]
	withParents
	withACL
	withIdempotent
)

// has reports whether one of the options is given.
func (cfg *createConfig) has(options createSet) bool { return cfg.given&options != 0 }

// combined returns all faults in the combination of the options.
func (cfg *createConfig) combined() error {
	var faults []error
	for _, rule := range [...]struct {
		of, needs, excludes createSet
		fault               string
	}{
		{
			of: withContainer, excludes: withEphemeral | withSequential | withTTL,
			fault: "option Container: cannot be combined with Ephemeral, Sequential or TTL",
		},
		{of: withTTL, excludes: withEphemeral, fault: "option TTL: cannot be combined with Ephemeral"},
		{of: withProtected, needs: withEphemeral, fault: "option Protected: must be combined with Ephemeral"},
		{
			of: withSession, needs: withEphemeral, excludes: withSequential | withProtected | withIdempotent,
			fault: "option KnownBySession: must be combined with Ephemeral, " +
				"and with none of Sequential, Protected and Idempotent",
		},
		{
			of: withEpoch, needs: withSession, excludes: withList | withWatch,
			fault: "option WithEpoch: must be combined with KnownBySession, and not with ListTo or WatchTo",
		},
		{
			of: withIdempotent, excludes: withSequential | withProtected,
			fault: "option Idempotent: cannot be combined with Sequential or Protected",
		},
	} {
		if cfg.has(rule.of) && (cfg.given&rule.needs != rule.needs || cfg.has(rule.excludes)) {
			faults = append(faults, errors.New(rule.fault))
		}
	}
	if cfg.has(withDeletion|withPatience) && !cfg.has(withProtected|withSession) {
		faults = append(faults, errors.New("options DeletionTo and UntilKnown: must be combined with Protected or KnownBySession"))
	}
	return errors.Join(faults...)
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

// WatchTo watches the new znode right after the create, within the same round trip, as
// [Client.Watch] with [WatchExists] does. It stores the Watch, which the caller has to close. It
// stores nil if Create fails, if Create finds its znode again after the reply was lost, or if
// another client deleted the znode. It also stores nil with [Sequential], because only the reply
// has the path. If it stored nil, call Watch.
func WatchTo(watch **Watch) CreateOption {
	return createOption(func(cfg *createConfig) {
		cfg.watch = watch
		if watch != nil {
			cfg.given |= withWatch
		}
	})
}
