package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// Create creates a znode with the data, as the options say, and returns the
// path it got: not the one that was given where [Sequential] or [Protected] is.
//
// It is retried by the client's policy until ctx ends; what was never sent is
// always tried again. When the reply to an attempt was lost, Create looks for the znode
// if it is [Protected], gives up with [ErrUnknownOutcome] if it is only
// [Sequential], since a second znode could result, and otherwise tries again: an
// [ErrNodeExists] that may be its own doing then wraps [ErrUnknownOutcome] too,
// unless [Idempotent] settles it.
//
// If ctx ends first the error wraps ctx's, and ErrUnknownOutcome if a request
// was on its way. Other errors: [ErrNodeExists], [ErrNoNode] for a missing
// parent (see [WithParents]), [ErrNoAuth], [ErrInvalidACL],
// [ErrNoChildrenForEphemerals], [ErrTooLarge], and those of every operation.
func (c *Client) Create(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, error) {
	created, err := c.create(ctx, path, data, opts)
	if err != nil {
		return "", callError(ctx, "create", path, err)
	}
	return c.viewPath(created), nil
}

// create is Create without what the caller sees: the path is that in the ensemble.
func (c *Client) create(ctx context.Context, path string, data []byte, opts []CreateOption) (string, error) {
	cr, err := c.newCreation(path, data, opts)
	if err != nil {
		return "", err
	}
	return cr.run(ctx)
}

// CheckCreate returns the error that [Client.Create] with these arguments returns before it sends
// anything, or nil: all that is wrong with the arguments, [ErrTooLarge] included.
func (c *Client) CheckCreate(path string, data []byte, opts ...CreateOption) error {
	_, err := c.newCreation(path, data, opts)
	return opError("create", path, err)
}

// A creation is one call of Create on its way.
type creation struct {
	createConfig

	core    *core
	session int64 // that it is bound to, 0 for any
	path    string
	data    []byte // as it is written
	acls    []ACL
	doubt   doubt
	guard   *protection // nil if neither protected nor known by its data
	claims  *claims     // set with byData
}

func (c *Client) newCreation(path string, data []byte, opts []CreateOption) (*creation, error) {
	cr := &creation{core: c.core, session: c.session, data: c.core.cfg.pack(data)}
	for _, opt := range opts {
		opt.applyCreate(&cr.createConfig)
	}
	if err := cr.validate(path); err != nil {
		return nil, err
	}
	if cr.has(withProtected) {
		cr.guard = newProtection()
		path = cr.guard.name(path)
	}
	cr.path = c.fullPath(path)
	if cr.has(withData) {
		cr.guard, cr.claims = &protection{byData: true, data: cr.data}, c.claims()
	}
	if cr.epoch != nil {
		cr.guard.epoch = &epoch{path: EpochOf(cr.path)}
	}
	cr.acls = cr.aclOf(cr.path)
	return cr, errors.Join(validateACL("ACL", cr.acls), c.core.checkSize(cr.size()))
}

// aclOf returns the ACL for the znode or one of its parents.
func (cr *creation) aclOf(full string) []ACL {
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
	// A sequential path may end in a slash: its name is then the number alone.
	if cr.has(withSequential) && len(path) > 1 && path[len(path)-1] == '/' {
		path += "0"
	}
	faults := []error{ValidatePath(path), cr.combined()}
	if cr.has(withTTL) && (cr.ttl < time.Millisecond || cr.ttl > MaxTTL) {
		faults = append(faults, fmt.Errorf("option TTL %v: must be between 1ms and %v", cr.ttl, MaxTTL))
	}
	return errors.Join(faults...)
}

// MaxTTL is the longest time that a server keeps a znode created with [TTL]:
// what 40 bits of milliseconds hold.
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
