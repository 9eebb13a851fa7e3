package cache

import (
	"iter"

	"github.com/docent-go/docent/framework"
)

// A Node is a znode as the cache has it. A change is its creation, its deletion or a change of its
// data. No watch notifies of Pzxid, Cversion, NumChildren and Aversion in Stat: those are of when
// the znode was last read.
type Node struct {
	Path string
	Data []byte // shared, so it must not be changed
	Stat framework.Stat
}

// A Snapshot is what a [Cache] had at one moment. It never changes, and its methods may be called
// concurrently. Data is shared with the cache, so it must not be changed.
type Snapshot struct {
	tree    pathTree[Node]
	unread  pathTree[refusal] // left out, with all below
	settled bool
	leftOut int // how many znodes the bounds leave out, without those below them
}

// A refusal is a znode that can't be read, and why.
type refusal struct {
	path string
	err  error
}

// Get returns the znode at path, and whether there is one.
func (s *Snapshot) Get(path string) (Node, bool) {
	if n := s.tree.get(path); n != nil {
		return *n, true
	}
	return Node{}, false
}

// Children returns the children of the znode at path, with their names, in the names' order.
func (s *Snapshot) Children(path string) iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		for name, n := range s.tree.children(path) {
			if !yield(name, *n) {
				return
			}
		}
	}
}

// All returns all znodes with their paths, parents before children, in the order of the paths.
func (s *Snapshot) All() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		for path, n := range s.tree.from("") {
			if !yield(path, *n) {
				return
			}
		}
	}
}

// Unread returns the paths of the znodes that the client can't read, each with the reason, in the
// order of the paths. The cache leaves them out: see the package's section "Permissions". The error
// matches [framework.ErrNoAuth], [framework.ErrTooLarge] or [framework.ErrNotGzip].
func (s *Snapshot) Unread() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for path, r := range s.unread.from("") {
			if !yield(path, r.err) {
				return
			}
		}
	}
}

// Len returns the number of znodes.
func (s *Snapshot) Len() int { return s.tree.len() }

// Settled reports whether the snapshot is the tree at one instant: see the package's section
// "One instant".
func (s *Snapshot) Settled() bool { return s.settled }
