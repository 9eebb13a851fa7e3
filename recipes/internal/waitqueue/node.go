package waitqueue

import (
	"cmp"
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

// sequenceDigits is the least length of a sequence number: the server pads it to
// ten, the sign of a negative one included.
const sequenceDigits = 10

// parse returns the contender that name means. The kind is what stands before
// the number, wherever the name begins: Curator sorts by what follows the last
// occurrence of the kind, so whoever made the node, it contends. Everything else
// in the directory is none of the queue's business.
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

// Sort returns the contenders among the names of a directory's children, in the
// order of their numbers, those that are [Node.Uncounted] last: these end
// in no certain order, but for Queue.settle. Nodes of one number (see
// [Queue.NewAttemptBeside]) come in the order of the kinds.
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

// Index returns where the node with the name stands, or -1.
func Index(nodes []Node, name string) int {
	return slices.IndexFunc(nodes, func(n Node) bool { return n.Name == name })
}
