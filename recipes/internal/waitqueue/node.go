package waitqueue

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

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
