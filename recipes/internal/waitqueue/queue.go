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
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/queuenode"
)

// A Queue is a directory of contenders. It is immutable.
type Queue struct {
	Client *framework.Client
	Dir    string
	Kinds  []string    // the kinds of contenders, as in "lock-"; none is a suffix of another
	ACL    []acl.Entry // of contenders and missing parents; nil for the client's

	// Predecessor returns the index of the node that the node at own waits for, among those before
	// the given index; -1 if there is none.
	Predecessor func(nodes []queuenode.Node, own, before int) int

	// OnPosition is called with the number of contenders ahead of a waiting attempt. It may be nil.
	OnPosition func(ahead int)

	// MayReplace reports whether another node that waiting has to wait for may have taken the place
	// of gone. nil means never. All other new nodes come behind those that exist.
	MayReplace func(gone, waiting queuenode.Node) bool
}

// ErrBusy is returned by [Attempt.Try] when another client holds the lock.
var ErrBusy = errors.New("waitqueue: busy")

// inTurn reports whether each contender waits for all contenders ahead. The grant of one then shows
// that none is left ahead of it.
func (q *Queue) inTurn() bool { return len(q.Kinds) == 1 && q.MayReplace == nil }

// List returns the contenders in order. It returns none if the directory does not exist, and
// [ErrMixed] if a contender of another kind is there, unless that is to be refused itself.
func (q *Queue) List(ctx context.Context) ([]queuenode.Node, error) {
	v, err := q.list(ctx, q.Client)
	if err == nil {
		_, err = q.otherAhead(ctx, q.Client, v, nil, 0)
	}
	if err != nil {
		return nil, err
	}
	return v.nodes, nil
}

func (q *Queue) list(ctx context.Context, c *framework.Client) (view, error) {
	names, _, err := c.Children(ctx, q.Dir)
	if errors.Is(err, framework.ErrNoNode) {
		return view{}, nil
	}
	if err != nil {
		return view{}, err
	}
	return q.ordered(ctx, c, names)
}

// A view is what one listing of the directory shows. It is never changed.
type view struct {
	nodes  []queuenode.Node // the queue's contenders, in order
	others []queuenode.Node // contenders of other kinds, in the order of their numbers; as a rule none
	leases bool             // the directory of a semaphore's permits is among the children
}

// viewOf returns what the names of the directory's children show. Overflowed nodes are yet to be put
// in order.
func (q *Queue) viewOf(names []string) view {
	v := view{nodes: make([]queuenode.Node, 0, len(names))}
	for _, name := range names {
		if node, ok := queuenode.Parse(name, q.Kinds); ok {
			v.nodes = append(v.nodes, node)
		} else if node, ok := queuenode.ParseAny(name); ok {
			v.others = append(v.others, node)
		} else if name == queuenode.LeasesDir {
			v.leases = true
		}
	}
	slices.SortFunc(v.nodes, queuenode.Compare)
	slices.SortFunc(v.others, queuenode.Compare)
	return v
}

// ordered returns what the names of the directory's children show.
func (q *Queue) ordered(ctx context.Context, c *framework.Client, names []string) (v view, err error) {
	v = q.viewOf(names)
	v.nodes, err = q.orderOverflowed(ctx, c, v.nodes)
	return v, err
}

// A position is where a node is in a queue. The zero position is that of a holder.
type position struct {
	ahead       int    // how many contenders are ahead
	predecessor string // name of the node that it waits for; "" if there is none
	next        string // name of its predecessor after that; "" if there is none
	last        bool   // the predecessor's deletion grants the lock; see Queue.MayReplace
	both        bool   // the deletion of predecessor and next grants the lock
	behindFirst bool   // the predecessor itself waits for no contender: it holds the lock
	foreign     bool   // the predecessor is of another kind, and is to be refused; its name is below the directory
}

// position returns where the node at own is among the nodes.
func (q *Queue) position(nodes []queuenode.Node, own int) position {
	p := position{ahead: own}
	predecessor := q.Predecessor(nodes, own, own)
	if predecessor < 0 {
		return p
	}
	p.predecessor = nodes[predecessor].Name
	p.behindFirst = q.Predecessor(nodes, predecessor, predecessor) < 0
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
	return position{ahead: p.ahead - 1, predecessor: p.predecessor, last: true, behindFirst: true}
}

// behindHolder returns the position after the grant of the predecessor, in a queue that is inTurn.
func (p position) behindHolder() position {
	return position{ahead: 1, predecessor: p.predecessor, last: true, behindFirst: true}
}
