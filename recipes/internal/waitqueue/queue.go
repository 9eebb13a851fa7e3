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
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/zkpath"
)

// A Queue is a directory of contenders. It is immutable.
//
// A new node comes behind all nodes that exist, MayReplace apart.
type Queue struct {
	Client *framework.Client
	Dir    string
	Path   string      // of the recipe, above Dir; "" if that is Dir
	Kinds  []string    // the kinds of contenders, as in "lock-"; none is a suffix of another
	ACL    []acl.Entry // of contenders and missing parents; nil for the client's

	// Predecessor returns the index of the node that the node at own waits for, among those before
	// the given index; -1 if there is none. The nodes are in the order of [queuenode.Compare], and no
	// node waits for one behind it in that order.
	Predecessor func(nodes []queuenode.Node, own, before int) int

	// Beyond is how many contenders are ahead of the whole queue, in whatever tells how many are ahead.
	Beyond int

	// OnPosition is called with the number of contenders ahead of a waiting attempt. It may be nil.
	OnPosition func(ahead int)

	// OnLongWait is the report of each attempt's [LongWait], with its predecessor. It may be nil.
	OnLongWait func(waited time.Duration, by Blocker)

	// MayReplace reports whether another node that waiting has to wait for may have taken the place
	// of gone: then the deletion of gone is no grant, and the contender lists again. nil means never.
	// All other new nodes come behind those that exist: it gives no other order to them. With a MayReplace no
	// attempt concludes anything from the grant of another one: see sharing.prepare.
	MayReplace func(gone, waiting queuenode.Node) bool
}

// ErrBusy is returned by [Attempt.Try] when another client holds the lock.
var ErrBusy = errtype.New("waitqueue: busy", errtype.Other)

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
	names  []string         // other children that may be contenders of unknown libraries; as a rule none
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
		} else if _, ok := queuenode.ParseUnknown(name); ok {
			v.names = append(v.names, name)
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

// A position is what a node waits for. The zero position is that of a holder.
type position struct {
	ahead       int    // how many contenders are ahead, for reports
	predecessor string // name of the node that it waits for; "" if there is none
	holds       bool   // the predecessor waits for no contender: it holds the lock; for reports

	also string          // name of a node whose event is awaited, too; "" if there is none
	news <-chan struct{} // another reason to wake up; nil for none
}

// position returns where the node at own is among the nodes.
func (q *Queue) position(nodes []queuenode.Node, own int) position {
	pos := position{ahead: own}
	if i := q.Predecessor(nodes, own, own); i >= 0 {
		pos.predecessor = nodes[i].Name
		pos.holds = q.Predecessor(nodes, i, i) < 0
	}
	return pos
}

// ErrMixed is returned to a contender if a contender of another kind is ahead of it on its path.
var ErrMixed = errtype.New("another kind of lock is on the path: both would be granted, so give each kind a path of its own", "mixed")

// mixed returns ErrMixed, which the znode in dir is the reason for.
func (q *Queue) mixed(dir string, node queuenode.Node) error {
	return q.refusal(fmt.Sprintf("%s, of %s", q.Client.AbsolutePath(zkpath.Join(dir, node.Name)), node.Recipe()))
}

// refusal returns ErrMixed, with what is on the path and which recipe the queue is of.
func (q *Queue) refusal(other string) error {
	own := queuenode.Node{Kind: q.Kinds[0]}
	if q.Path != "" {
		own.Kind = queuenode.LeaseKind
	}
	return fmt.Errorf("%w: %s; this is %s", ErrMixed, other, own.Recipe())
}

// otherAhead looks for contenders of another kind that are ahead of the node self, which v shows and
// whose czxid is given; with a nil self, for any. It returns [ErrMixed] if there is one. But if a
// contender of the queue's own kinds is ahead of all these, each of them is refused itself, and its
// znode only remains for a moment, unless it is of a library that refuses nothing. otherAhead then returns the name
// of one, below the directory. Until
// that is gone, self must not be granted: a program that refuses nothing may hold it.
//
// All kinds that queue in one directory have one counter. A semaphore's contenders have another one, so
// the order is that of the czxids. Each contender creates its znode first and lists then. So of two, the
// later one sees the earlier one, and only the later one is refused.
func (q *Queue) otherAhead(ctx context.Context, c *framework.Client, v view, self *queuenode.Node, czxid int64) (name string, err error) {
	unknown, err := Unknown(ctx, c, q.Dir, v.names, self)
	if err != nil {
		return "", err
	}
	others := v.others
	if len(unknown) > 0 {
		others = slices.SortedFunc(slices.Values(slices.Concat(others, unknown)), queuenode.Compare)
	}
	for _, other := range others {
		switch {
		case other.Overflowed():
			return "", q.mixed(q.Dir, other)
		case self != nil && queuenode.Compare(other, *self) > 0:
		case len(v.nodes) == 0 || queuenode.Compare(v.nodes[0], others[0]) > 0:
			return "", q.mixed(q.Dir, other)
		default:
			name = other.Name
		}
	}
	if !v.leases {
		return name, nil
	}
	dir := zkpath.Join(q.Dir, queuenode.LeasesDir)
	names, _, err := c.Children(ctx, dir)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return "", err
	}
	if self == nil {
		czxid = 0
	}
	permit, err := q.OtherAhead(ctx, c, dir, queuenode.Sort(names, queuenode.LeaseKind), v.nodes, czxid)
	if permit == "" {
		return name, err
	}
	return zkpath.Join(queuenode.LeasesDir, permit), err
}

// Unknown returns the contenders of libraries that docent does not know among the names of dir's children: the
// ephemeral ones that end in a number before that of self, if it is not nil. Only names tell which children to read.
// So it reads the first of them alone, by one request: programs may keep thousands of znodes there.
func Unknown(
	ctx context.Context, c *framework.Client, dir string, names []string, self *queuenode.Node,
) ([]queuenode.Node, error) {
	var found []queuenode.Node
	for _, name := range names {
		if n, ok := queuenode.ParseUnknown(name); ok && (self == nil || queuenode.Compare(n, *self) < 0) {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	slices.SortFunc(found, queuenode.Compare)
	found = found[:min(len(found), maxStats)]
	stats, err := statsOf(ctx, c, dir, found)
	return slices.DeleteFunc(found, func(n queuenode.Node) bool { return !proto.IsSession(stats[n.Name].EphemeralOwner) }), err
}

// OtherAhead looks for znodes of others, which are children of dir, that were created before the znode
// with the czxid; for any if that is 0. It returns [ErrMixed] if there is one, and "" if there is none.
// If one of the queued nodes is older than all others, the others are refused. OtherAhead then returns
// the name of the oldest, which the caller has to wait for.
func (q *Queue) OtherAhead(
	ctx context.Context, c *framework.Client, dir string, others, queued []queuenode.Node, czxid int64,
) (name string, err error) {
	for len(others) > 0 {
		czxids, err := created(ctx, c, dir, others)
		if err != nil {
			return "", err
		}
		others = slices.DeleteFunc(slices.Clone(others), func(other queuenode.Node) bool {
			return czxids[other.Name] == 0 || czxid != 0 && czxids[other.Name] >= czxid
		})
		if len(others) == 0 {
			break
		}
		oldest := slices.MinFunc(others, func(a, b queuenode.Node) int { return cmp.Compare(czxids[a.Name], czxids[b.Name]) })
		for some := range slices.Chunk(queued, maxStats) { // the oldest of them come first
			queuedCzxids, err := created(ctx, c, q.Dir, some)
			if err != nil {
				return "", err
			}
			if slices.ContainsFunc(slices.Collect(maps.Values(queuedCzxids)), func(at int64) bool { return at < czxids[oldest.Name] }) {
				return oldest.Name, nil
			}
		}
		_, exists, err := c.Exists(ctx, zkpath.Join(dir, oldest.Name))
		switch {
		case err != nil:
			return "", err
		case exists: // after all older queued ones had gone
			return "", q.mixed(dir, oldest)
		}
	}
	return "", nil
}

// CreationError returns the error of a creation in the queue, with [ErrMixed] if the path of the recipe is the
// znode of an unfair mutex: no znode can be below that. An ephemeral znode further up is no lock at the path.
func (q *Queue) CreationError(err error) error {
	childless := new(errtype.ChildlessError)
	if errors.As(err, &childless) && childless.Path == q.Client.AbsolutePath(cmp.Or(q.Path, q.Dir)) {
		return fmt.Errorf("%w: %w", q.refusal("the znode of an unfair mutex"), err)
	}
	return err
}

// ErrCounterEnd is returned to a writer that also asks for the read side, if its number is from the
// end of the directory's counter. Other znodes may have the same number.
var ErrCounterEnd = errtype.New("the counter of the lock's directory has come to its end; "+
	"it begins again once the directory has been empty and removed", "counter_end")

// maxStats is how many znodes one request of statsOf reads.
const maxStats = 64

// orderOverflowed puts the overflowed nodes, which end the sorted nodes, in the order of their
// creation, which it reads from their Stats. It leaves out nodes that are gone by then.
func (q *Queue) orderOverflowed(
	ctx context.Context, c *framework.Client, nodes []queuenode.Node,
) ([]queuenode.Node, error) {
	first := slices.IndexFunc(nodes, queuenode.Node.Overflowed)
	if first < 0 || first == len(nodes)-1 {
		return nodes, nil
	}
	created, err := created(ctx, c, q.Dir, nodes[first:])
	if err != nil {
		return nil, err
	}
	nodes = slices.DeleteFunc(nodes, func(n queuenode.Node) bool { return n.Overflowed() && created[n.Name] == 0 })
	slices.SortFunc(nodes[min(first, len(nodes)):], func(a, b queuenode.Node) int {
		return cmp.Compare(created[a.Name], created[b.Name])
	})
	return nodes, nil
}

// created returns the czxids of the nodes that exist, which are children of dir, by their names.
func created(
	ctx context.Context, c *framework.Client, dir string, nodes []queuenode.Node,
) (map[string]int64, error) {
	stats, err := statsOf(ctx, c, dir, nodes)
	czxids := make(map[string]int64, len(stats))
	for name, st := range stats {
		czxids[name] = st.Czxid
	}
	return czxids, err
}

// statsOf returns the Stats of the nodes that exist, which are children of dir, by their names.
func statsOf(
	ctx context.Context, c *framework.Client, dir string, nodes []queuenode.Node,
) (map[string]framework.Stat, error) {
	stats := make(map[string]framework.Stat, len(nodes))
	for some := range slices.Chunk(nodes, maxStats) {
		paths := make([]string, len(some))
		for i, node := range some {
			paths[i] = zkpath.Join(dir, node.Name)
		}
		reads, errs := c.GetEach(ctx, paths...)
		for i, node := range some {
			st, err := reads[i].Stat, errs[i]
			if errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) { // of the data
				st, _, err = c.Exists(ctx, paths[i])
			}
			switch {
			case st.Czxid != 0: // whatever the data is
				stats[node.Name] = st
			case err != nil && !errors.Is(err, framework.ErrNoNode):
				return nil, err
			}
		}
	}
	return stats, nil
}
