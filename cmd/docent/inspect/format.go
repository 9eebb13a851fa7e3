package inspect

import (
	"cmp"
	"slices"

	"github.com/docent-go/docent/internal/queuenode"
)

// A format is how the contenders of a queue are named, and which of them wait for which.
type format struct {
	kind        Kind
	kinds       []string        // of the znodes' names: see package waitqueue
	sides       map[string]Side // by the kind of the name
	predecessor func(nodes []queuenode.Node, own, before int) int
}

// The kinds of names that package waitqueue does not know.
const (
	lockKind       = "lock-"
	latchKind      = "latch-"
	leaseKind      = "lease-"
	kazooKind      = "__lock__"
	kazooReadKind  = "__rlock__"
	turnsDirectory = "locks"
	leasesDir      = "leases"
)

// formats returns the formats of queues. A name is of one format at most.
func formats() []format {
	alone := queuenode.ExclusivePredecessor
	return []format{
		{Mutex, []string{lockKind}, map[string]Side{lockKind: Alone}, alone},
		{Leader, []string{latchKind}, map[string]Side{latchKind: Alone}, alone},
		readWrite(queuenode.WriteKind, queuenode.ReadKind),
		readWrite(kazooKind, kazooReadKind),
	}
}

// readWrite returns the format of read/write locks whose contenders have the kinds.
func readWrite(write, read string) format {
	sides := map[string]Side{write: Writer, read: Shared}
	return format{ReadWrite, []string{write, read}, sides, queuenode.SharedPredecessor(write)}
}

// isKazoo reports whether the names are kazoo's own.
func (f format) isKazoo() bool { return f.kinds[0] == kazooKind }

// kindOf returns the kind of a lock with the contenders, and how many of them may hold it. kazoo's
// writers have the names of its mutexes, so without a reader they are taken for a mutex.
func (f format) kindOf(contenders []Contender) (Kind, int) {
	shares := slices.ContainsFunc(contenders, func(c Contender) bool { return c.Side == Shared })
	switch {
	case f.isKazoo() && !shares:
		for i := range contenders {
			contenders[i].Side = Alone
		}
		return Mutex, 1
	case f.kind == ReadWrite:
		return ReadWrite, 0
	}
	return f.kind, 1
}

// contenders returns the contenders of the format among the znodes, in the order of the queue.
func (f format) contenders(among []Znode) []Contender {
	nodes, znodes := f.sort(among)
	found := make([]Contender, len(nodes))
	shared := 0 // where the contenders begin that share the lock and come directly ahead
	for i, node := range nodes {
		found[i] = contenderOf(znodes[node.Name], Contender{
			Sequence: int64(node.Sequence), Side: f.sides[node.Kind], State: Holds,
		})
		before := i
		if f.sides[node.Kind] == Shared {
			before = shared // those between do not block it
		} else {
			shared = i + 1
		}
		ahead := f.ahead(nodes, i, before)
		if len(ahead) > 0 {
			found[i].State = Waits
		}
		for _, k := range ahead {
			found[i].WaitsFor = append(found[i].WaitsFor, znodes[nodes[k].Name].Path)
		}
		if node.Overflowed() && !found[i].Read() {
			found[i].State, found[i].WaitsFor = Unknown, nil
		}
		if f.isKazoo() {
			found[i].By = Kazoo
		}
	}
	return found
}

// sort returns the contenders' names in the order of the queue, and the znodes by their names. Past
// the end of the directory's counter the transactions that created the znodes decide.
func (f format) sort(among []Znode) ([]queuenode.Node, map[string]Znode) {
	names, znodes := make([]string, len(among)), make(map[string]Znode, len(among))
	for i, z := range among {
		names[i] = z.name()
		znodes[names[i]] = z
	}
	nodes := queuenode.Sort(names, f.kinds...)
	if i := slices.IndexFunc(nodes, queuenode.Node.Overflowed); i >= 0 {
		slices.SortStableFunc(nodes[i:], func(a, b queuenode.Node) int {
			return cmp.Compare(znodes[a.Name].Stat.Czxid, znodes[b.Name].Stat.Czxid)
		})
	}
	return nodes, znodes
}

// ahead returns the contenders before an index that the one at own waits for, the nearest first: its
// predecessor and, if that one shares the lock with others, those others. A writer further ahead is
// left out, because the nearest writer waits for it.
func (f format) ahead(nodes []queuenode.Node, own, before int) []int {
	var found []int
	for i := f.predecessor(nodes, own, before); i >= 0; i = f.predecessor(nodes, own, i) {
		found = append(found, i)
		if f.sides[nodes[i].Kind] != Shared {
			break
		}
	}
	return found
}
