package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
)

// Create creates a znode with the data, as the options say, and returns its path. With [Sequential]
// or [Protected] the path differs from the given path.
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
// [ErrNoAuth], [ErrInvalidACL], [ErrNoChildrenForEphemerals], [ErrTooLarge], and the errors of
// every operation.
func (c *Client) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, error) {
	created, err := c.create(ctx, path, data, opts)
	if err != nil {
		return "", callError(ctx, "create", path, err)
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
	return opError("create", path, err)
}

// A creation is one call of Create.
type creation struct {
	createConfig

	core    *core
	session int64 // the session that it is bound to, 0 for any
	path    string
	data    []byte // as the client sends it
	acls    []acl.Entry
	doubt   doubt
	guard   *protection // nil without Protected and KnownByData
	claims  *claims     // set with byData
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
		cr.guard = newProtection()
		path = cr.guard.name(path)
	}
	cr.path = c.fullPath(path)
	if cr.has(withData) {
		cr.guard, cr.claims = &protection{byData: true, data: cr.data}, c.claims()
	}
	if cr.over != nil && cr.guard != nil {
		cr.guard.storeIn = cr.over
		*cr.over = nil
	}
	if cr.epoch != nil {
		if IsEpoch(cr.path) {
			return nil, fmt.Errorf("path %q: an epoch has no epoch", errtype.Shortened(path))
		}
		cr.guard.epoch = &epoch{path: EpochOf(cr.path)}
	}
	cr.acls = cr.aclOf(cr.path)
	return cr, errors.Join(validateACL("ACL", cr.acls), c.core.checkSize(cr.size()))
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
	if cr.has(withTTL) && (cr.ttl < time.Millisecond || cr.ttl > MaxTTL) {
		err = errors.Join(err, fmt.Errorf("option TTL %v: must be between 1ms and %v", cr.ttl, MaxTTL))
	}
	return err
}

// MaxTTL is the longest time that a server keeps a znode created with [TTL]: as many milliseconds
// as 40 bits hold.
const MaxTTL = (1<<40 - 1) * time.Millisecond

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
