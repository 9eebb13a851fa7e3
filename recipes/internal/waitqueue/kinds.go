package waitqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/queuenode"
)

// ErrMixed is returned to a contender if a contender of another kind is ahead of it on its path.
var ErrMixed = errtype.New("another kind of lock is on the path: both would be granted", "mixed")

// mixed returns ErrMixed, which the znode is the reason for.
func mixed(dir, name string) error {
	return fmt.Errorf("%w: %s", ErrMixed, framework.JoinPath(dir, name))
}

// otherAhead looks for contenders of another kind that are ahead of the node self, which v shows and
// whose czxid is given; with a nil self, for any. It returns [ErrMixed] if there is one. But if a
// contender of the queue's own kinds is ahead of all these, each of them is refused itself, and its
// znode only remains for a moment. otherAhead then returns the name of one, below the directory. Until
// that is gone, self must not be granted: a program that refuses nothing may hold it.
//
// All kinds that queue in one directory have one counter. A semaphore's contenders have another one, so
// the order is that of the czxids. Each contender creates its znode first and lists then. So of two, the
// later one sees the earlier one, and only the later one is refused.
func (q *Queue) otherAhead(ctx context.Context, c *framework.Client, v view, self *queuenode.Node, czxid int64) (name string, err error) {
	for _, other := range v.others {
		switch {
		case other.Overflowed():
			return "", mixed(q.Dir, other.Name)
		case self != nil && queuenode.Compare(other, *self) > 0:
		case len(v.nodes) == 0 || queuenode.Compare(v.nodes[0], v.others[0]) > 0:
			return "", mixed(q.Dir, other.Name)
		default:
			name = other.Name
		}
	}
	if !v.leases {
		return name, nil
	}
	dir := framework.JoinPath(q.Dir, queuenode.LeasesDir)
	names, _, err := c.Children(ctx, dir)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return "", err
	}
	if self == nil {
		czxid = 0
	}
	permit, err := OtherAhead(ctx, c, dir, queuenode.Sort(names, queuenode.LeaseKind), q.Dir, v.nodes, czxid)
	if permit == "" {
		return name, err
	}
	return framework.JoinPath(queuenode.LeasesDir, permit), err
}

// OtherAhead looks for znodes of others, which are children of dir, that were created before the znode
// with the czxid; for any if that is 0. It returns [ErrMixed] if there is one, and "" if there is none.
// If one of the nodes of kin, which are children of kinDir, is older than all others, the others are
// refused. OtherAhead then returns the name of the oldest, which the caller has to wait for.
func OtherAhead(
	ctx context.Context, c *framework.Client, dir string, others []queuenode.Node, kinDir string, kin []queuenode.Node, czxid int64,
) (name string, err error) {
	oldest := int64(0)
	for _, other := range others {
		st, exists, err := c.Exists(ctx, framework.JoinPath(dir, other.Name))
		switch {
		case err != nil:
			return "", err
		case exists && (czxid == 0 || st.Czxid < czxid) && (oldest == 0 || st.Czxid < oldest):
			name, oldest = other.Name, st.Czxid
		}
	}
	if name == "" {
		return "", nil
	}
	for _, node := range kin {
		st, exists, err := c.Exists(ctx, framework.JoinPath(kinDir, node.Name))
		if err != nil {
			return "", err
		}
		if exists && st.Czxid < oldest {
			return name, nil
		}
	}
	_, exists, err := c.Exists(ctx, framework.JoinPath(dir, name))
	switch {
	case err != nil:
		return "", err
	case exists: // after all older kin had gone
		return "", mixed(dir, name)
	}
	others = slices.DeleteFunc(slices.Clone(others), func(other queuenode.Node) bool { return other.Name == name })
	return OtherAhead(ctx, c, dir, others, kinDir, kin, czxid)
}

// creationError returns the error of a creation, with [ErrMixed] if the path of the directory is the
// znode of an unfair mutex: no znode can be below that.
func creationError(err error) error {
	if errors.Is(err, framework.ErrNoChildrenForEphemerals) {
		return fmt.Errorf("%w: %w", ErrMixed, err)
	}
	return err
}
