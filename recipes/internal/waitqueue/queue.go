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
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
)

// A Queue is a directory of contenders. It is immutable.
type Queue struct {
	Client *framework.Client
	Dir    string
	Kinds  []string    // the kinds of contenders, as in "lock-"; none is a suffix of another
	ACL    []acl.Entry // of contenders and missing parents; nil for the client's

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

// inTurn reports whether each contender waits for all contenders ahead. The grant of one then shows
// that none is left ahead of it.
func (q *Queue) inTurn() bool { return len(q.Kinds) == 1 && q.MayReplace == nil }

// List returns the contenders in order. It returns none if the directory does not exist, and
// [ErrMixed] if a contender of another kind is there, unless that is to be refused itself.
func (q *Queue) List(ctx context.Context) ([]Node, error) {
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
	nodes  []Node // the queue's contenders, in order
	others []Node // contenders of other kinds, in the order of their numbers; as a rule none
	leases bool   // the directory of a semaphore's permits is among the children
}

// viewOf returns what the names of the directory's children show. Overflowed nodes are yet to be put
// in order.
func (q *Queue) viewOf(names []string) view {
	v := view{nodes: make([]Node, 0, len(names))}
	for _, name := range names {
		if node, ok := parse(name, q.Kinds); ok {
			v.nodes = append(v.nodes, node)
		} else if node, ok := parse(name, allKinds[:]); ok {
			v.others = append(v.others, node)
		} else if name == LeasesDir {
			v.leases = true
		}
	}
	slices.SortFunc(v.nodes, compare)
	slices.SortFunc(v.others, compare)
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
func (q *Queue) position(nodes []Node, own int) position {
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

// A Node is a contender's znode in a queue.
type Node struct {
	Name     string // of the znode, without its parent
	Kind     string // which of the queue's kinds it has
	Sequence int32

	rank int // of the kind among the queue's
}

// digits returns the number as it is in the name.
func (n Node) digits() string {
	return n.Name[strings.LastIndex(n.Name, n.Kind)+len(n.Kind):]
}

// lastSequence is where a directory's counter ends. The creations that are outstanding together at
// that moment get this number, then the least negative one, and so on upwards. All later creations
// get this number again. A directory that is never empty is never removed. At 1,000 contenders a
// second its counter ends after 25 days.
const lastSequence = math.MaxInt32

// Overflowed reports whether the number is one from the end of the directory's counter. Such a node
// comes after all others, and its number does not give its order among the overflowed ones.
func (n Node) Overflowed() bool { return n.Sequence == lastSequence || n.Sequence < 0 }

// sequenceDigits is the least length of a sequence number: the server pads it to ten characters,
// which include the sign of a negative number.
const sequenceDigits = 10

// parse returns the contender that name means. Curator sorts by what follows the last occurrence of
// the kind, so a name contends however it begins. Other children of the directory are ignored.
func parse(name string, kinds []string) (Node, bool) {
	for rank, kind := range kinds {
		i := strings.LastIndex(name, kind)
		if i < 0 {
			continue
		}
		digits := name[i+len(kind):]
		if len(digits) < sequenceDigits || digits[0] == '+' {
			continue
		}
		seq, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			continue
		}
		return Node{Name: name, Kind: kind, Sequence: int32(seq), rank: rank}, true
	}
	return Node{}, false
}

// Sort returns the contenders among the names of a directory's children, in the order of their
// numbers. Nodes that are [Node.Overflowed] come last; Queue.orderOverflowed puts them in order.
// Nodes of one number (see [Queue.NewDowngrade]) are in the order of their kinds.
func Sort(names []string, kinds ...string) []Node {
	nodes := make([]Node, 0, len(names))
	for _, name := range names {
		if node, ok := parse(name, kinds); ok {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, compare)
	return nodes
}

func compare(a, b Node) int {
	// As an unsigned number each comes after those that the server gave out before it.
	return cmp.Or(cmp.Compare(uint32(a.Sequence), uint32(b.Sequence)), cmp.Compare(a.rank, b.rank), cmp.Compare(a.Name, b.Name))
}

// Index returns the index of the node with the name, or -1.
func Index(nodes []Node, name string) int {
	return slices.IndexFunc(nodes, func(n Node) bool { return n.Name == name })
}
