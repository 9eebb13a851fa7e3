package cache

import (
	"iter"
	"strings"

	"github.com/docent-go/docent/framework"
)

// A Node is a znode as the cache has it. A change is its creation, its deletion or a change of its
// data. No watch notifies of Pzxid, Cversion, NumChildren and Aversion in Stat: those are of when
// the znode was last read.
type Node struct {
	Path string
	Data []byte // nil with WithoutData; shared, so it must not be changed
	Stat framework.Stat
}

// A Snapshot is what a [Cache] had at one moment. It never changes, and its methods may be called
// concurrently. Data is shared with the cache, so it must not be changed.
type Snapshot struct {
	tree    tree
	settled bool
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
		prefix := below(path)
		for n := range s.tree.children(path) {
			if !yield(n.Path[len(prefix):], *n) {
				return
			}
		}
	}
}

// All returns all znodes with their paths, parents before children, in the order of the paths.
func (s *Snapshot) All() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		for n := range s.tree.from("") {
			if !yield(n.Path, *n) {
				return
			}
		}
	}
}

// Len returns the number of znodes.
func (s *Snapshot) Len() int { return s.tree.len }

// Settled reports whether the snapshot is the tree at one instant: see the package's section
// "One instant".
func (s *Snapshot) Settled() bool { return s.settled }

// below returns what the paths of all znodes below path begin with.
func below(path string) string {
	if path == "/" {
		return path
	}
	return path + "/"
}

// child returns the path of a child.
func child(path, name string) string { return below(path) + name }

// children returns the children of the Node at path, in the order of their names.
func (t tree) children(path string) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		prefix := below(path)
		for next := prefix; next != ""; {
			start := next
			next = ""
			for n := range t.from(start) {
				if n.Path == "/" { // below itself, by its path
					continue
				}
				if !strings.HasPrefix(n.Path, prefix) {
					return
				}
				if name, _, deeper := strings.Cut(n.Path[len(prefix):], "/"); deeper {
					next = prefix + name + "0" // follows "/": behind all that is below that child
					break
				}
				if !yield(n) {
					return
				}
			}
		}
	}
}

// subtree returns the Node at path and all below it, parents first.
func (t tree) subtree(path string) []*Node {
	var found []*Node
	if n := t.get(path); n != nil {
		found = append(found, n)
	}
	prefix := below(path)
	for n := range t.from(prefix) {
		if !strings.HasPrefix(n.Path, prefix) {
			break
		}
		if n.Path != path {
			found = append(found, n)
		}
	}
	return found
}
