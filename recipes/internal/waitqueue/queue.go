// Package waitqueue is the queue of ephemeral sequential znodes in which the contenders of a fair
// lock wait. The contender with the lowest number is the holder, and every waiter watches its
// predecessor.
//
// Names and order are Apache Curator's (LockInternals and StandardLockInternalsDriver in
// org.apache.curator.framework.recipes.locks), so Curator's processes can contend in the same
// queue. This package adds three guarantees: a znode counts only in the session that created it,
// it exists at the moment of the grant, and a withdrawal leaves no orphan.
package waitqueue

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
)

// A Queue is a directory of contenders. It is immutable.
type Queue struct {
	Client *framework.Client
	Dir    string
	Kinds  []string        // the kinds of contenders, as in "lock-"; none is a suffix of another
	ACL    []framework.ACL // of contenders and missing parents; nil for the client's

	// Refused is a kind of contenders that have another order. If one is in the directory, List and
	// an attempt's first listing fail with [ErrMixed]. "" means none.
	Refused string

	// Predecessor returns the index of the node that the node at own waits for, among those before
	// the given index; -1 if there is none.
	Predecessor func(nodes []Node, own, before int) int

	// OnPosition is called with the number of contenders ahead of a waiting attempt. It may be nil.
	OnPosition func(ahead int)

	// MayReplace reports whether another node that waiting has to wait for may have taken the place
	// of gone. nil means never. All other new nodes come behind those that exist.
	MayReplace func(gone, waiting Node) bool
}

// ExclusivePredecessor is the Predecessor of a queue whose first contender alone holds the lock.
func ExclusivePredecessor(_ []Node, _, before int) int { return before - 1 }

// ErrBusy is returned by [Attempt.Try] when another client holds the lock.
var ErrBusy = errors.New("waitqueue: busy")

// ErrMixed is returned for a directory that has a contender of the kind that the queue refuses.
var ErrMixed = errtype.New("contenders of another format are in the directory: both would be granted", "mixed")

// inTurn reports whether each contender waits for all contenders ahead. The grant of one then shows
// that none is left ahead of it.
func (q *Queue) inTurn() bool { return len(q.Kinds) == 1 && q.MayReplace == nil }

// List returns the contenders in order. It returns none if the directory does not exist.
func (q *Queue) List(ctx context.Context) ([]Node, error) {
	return q.list(ctx, q.Client)
}

func (q *Queue) list(ctx context.Context, c *framework.Client) ([]Node, error) {
	names, _, err := c.Children(ctx, q.Dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return q.ordered(ctx, c, names)
}

// ordered returns the contenders among the names of the directory's children, in order.
func (q *Queue) ordered(ctx context.Context, c *framework.Client, names []string) ([]Node, error) {
	if q.Refused != "" && len(Sort(names, q.Refused)) > 0 {
		return nil, ErrMixed
	}
	return q.orderOverflowed(ctx, c, Sort(names, q.Kinds...))
}

// A position is where a node is in a queue. The zero position is that of a holder.
type position struct {
	ahead       int    // how many contenders are ahead
	predecessor string // name of the node that it waits for; "" if there is none
	next        string // name of its predecessor after that; "" if there is none
	last        bool   // the predecessor's deletion grants the lock; see Queue.MayReplace
	both        bool   // the deletion of predecessor and next grants the lock
}

// position returns where the node at own is among the nodes.
func (q *Queue) position(nodes []Node, own int) position {
	p := position{ahead: own}
	predecessor := q.Predecessor(nodes, own, own)
	if predecessor < 0 {
		return p
	}
	p.predecessor = nodes[predecessor].Name
	replaced := func(i int) bool { return q.MayReplace != nil && q.MayReplace(nodes[i], nodes[own]) }
	next := q.Predecessor(nodes, own, predecessor)
	if next < 0 {
		p.last = !replaced(predecessor)
		return p
	}
	p.next = nodes[next].Name
	p.both = q.Predecessor(nodes, own, next) < 0 && !replaced(predecessor) && !replaced(next)
	return p
}

// withoutNext returns the position after the deletion of next. It needs both.
func (p position) withoutNext() position {
	return position{ahead: p.ahead - 1, predecessor: p.predecessor, last: true}
}

// behindHolder returns the position after the grant of the predecessor, in a queue that is inTurn.
func (p position) behindHolder() position {
	return position{ahead: 1, predecessor: p.predecessor, last: true}
}
