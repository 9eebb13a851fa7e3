package framework

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkpath"
)

// WithParents creates missing parents as containers, as Curator does. They include the parents in a
// chroot or namespace. If a parent is removed in the meantime, it is created again.
func WithParents() CreateOption { return withParents }

// makeParent creates the parent of the path, because a create has just found it missing. If the create that
// makeParent sent in the round before has found its own parent missing, makeParent creates all that is
// missing. It does not wait for the parent's own create.
func (cr *creation) makeParent(ctx context.Context, s *session.Session) (err error) {
	dir, _ := zkpath.Split(cr.path)
	last := cr.parent
	cr.parent = nil
	if last != nil {
		_, err = last.Wait(ctx)
	}
	switch {
	case errors.Is(err, ErrNoNode):
		above, _ := zkpath.Split(dir)
		cr.parent, err = cr.makeParents(ctx, s, dir, above)
	case err == nil, errors.Is(err, ErrNodeExists), Retryable(err): // the first round, reaped meanwhile, or not made
		cr.parent, err = cr.beginParent(s, dir)
	default:
		err = explained(err, txnCreate, dir, cr.aclOf(dir))
	}
	return err
}

// makeParents creates the missing parents of the path, as containers. Like Curator it searches from
// below for the first that exists, since it may not be allowed to read further up. The search begins
// above those that are known to be missing. makeParents returns the request for the last, the parent,
// as soon as that is sent.
func (cr *creation) makeParents(
	ctx context.Context, s *session.Session, missing ...string,
) (parent *session.Pending[requests.Created], err error) {
	top := cr.path
	if len(missing) > 0 {
		top = missing[len(missing)-1]
	}
	for dir, _ := zkpath.Split(top); dir != "/"; dir, _ = zkpath.Split(dir) {
		found, err := session.Call(ctx, s, requests.Exists(dir))
		if errors.Is(err, ErrNoAuth) { // it exists: since 3.8.4 and 3.9.2, exists needs READ
			break
		}
		if err != nil && !errors.Is(err, ErrNoNode) {
			return nil, err
		}
		if found.Exists {
			break
		}
		missing = append(missing, dir)
	}
	for i, dir := range slices.Backward(missing) {
		p, err := cr.beginParent(s, dir)
		if i == 0 || err != nil {
			return p, err
		}
		if err := parentMade(ctx, p); err != nil {
			return nil, explained(err, txnCreate, dir, cr.aclOf(dir))
		}
	}
	return nil, nil
}

// beginParent creates one parent, and does not wait for the reply. The create follows it closely, so
// no server has time to find the parent empty. Parents hold an empty array, as Curator's do, because
// some clients can't read a znode that holds null.
func (cr *creation) beginParent(s *session.Session, dir string) (*session.Pending[requests.Created], error) {
	acl := cr.aclOf(dir)
	if err := validateACL("ACL of "+dir, acl); err != nil {
		return nil, err
	}
	if core := cr.client.core; dir == core.cfg.chroot {
		core.logChroot()
	}
	return session.Begin(s, requests.Create(dir, []byte{}, proto.FlagContainer, acl, 0)), nil
}

// logChroot logs once that the client creates its chroot: a chroot with a typing error is another tree.
func (c *core) logChroot() {
	c.mu.Lock()
	logged := c.lines.chroot
	c.lines.chroot = true
	c.mu.Unlock()
	if !logged {
		c.log.Warn("the chroot of the connect string does not exist: creating it", zap.String(zktel.AttrNodePath, c.cfg.chroot))
	}
}

// parentMade waits for the create of a parent and returns its fault. A parent that exists is none.
// If its own parent was reaped meanwhile, the next round creates both, from below.
func parentMade(ctx context.Context, parent *session.Pending[requests.Created]) error {
	if parent == nil {
		return nil
	}
	_, err := parent.Wait(ctx)
	if errors.Is(err, ErrNodeExists) || errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}
