package waitqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
)

// The kinds of contenders: what their znodes' names have before the number. Those of one group exclude
// each other as their recipe says, and no others.
const (
	MutexKind = "lock-"  // of mutexes, LeaderSelectors, and the queue of a semaphore
	LatchKind = "latch-" // of LeaderLatches

	ReadKind  = "__READ__" // of InterProcessReadWriteLocks
	WriteKind = "__WRIT__"

	LeaseKind = "lease-" // of a semaphore's permits, in LeasesDir

	KazooKind     = "__lock__" // of kazoo's Lock and WriteLock
	KazooReadKind = "__rlock__"
)

var allKinds = [...]string{ //nolint:gochecknoglobals // immutable
	MutexKind, LatchKind, ReadKind, WriteKind, LeaseKind, KazooKind, KazooReadKind,
}

// LeasesDir is the name of the directory of a semaphore's permits, below the semaphore's path. A
// contender of a semaphore claims the path with its znode there.
const LeasesDir = "leases"

// ErrMixed is returned to a contender if a contender of another kind is ahead of it on its path.
var ErrMixed = errtype.New("another kind of lock is on the path: both would be granted", "mixed")

// mixed returns ErrMixed, which the znode is the reason for.
func mixed(dir, name string) error {
	return fmt.Errorf("%w: %s", ErrMixed, framework.JoinPath(dir, name))
}

// checkKinds returns [ErrMixed] if a contender of another kind is ahead of the node self, which v
// shows; with a nil self, if there is one at all. All kinds that queue in one directory have one
// counter. Of two contenders, the one with the greater number therefore sees the other, so one of them
// is refused. A semaphore's contenders have another counter. They and the contenders in the directory
// each create a znode first and list then, so at least one of the two sees the other.
func (q *Queue) checkKinds(ctx context.Context, c *framework.Client, v view, self *Node) error {
	for _, other := range v.others {
		if self == nil || other.Overflowed() || compare(other, *self) < 0 {
			return mixed(q.Dir, other.Name)
		}
	}
	if !v.leases {
		return nil
	}
	dir := framework.JoinPath(q.Dir, LeasesDir)
	names, _, err := c.Children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if permits := Sort(names, LeaseKind); len(permits) > 0 {
		return mixed(dir, permits[0].Name)
	}
	return err
}

// CheckNone returns [ErrMixed] if one of the names of dir's children is a contender's. It is for a
// recipe whose own contenders are elsewhere.
func CheckNone(dir string, names []string) error {
	if found := Sort(names, allKinds[:]...); len(found) > 0 {
		return mixed(dir, found[0].Name)
	}
	return nil
}

// creationError returns the error of a creation, with [ErrMixed] if the path of the directory is the
// znode of an unfair mutex: no znode can be below that.
func creationError(err error) error {
	if errors.Is(err, framework.ErrNoChildrenForEphemerals) {
		return fmt.Errorf("%w: %w", ErrMixed, err)
	}
	return err
}
