package cache

import (
	"iter"
	"math/rand/v2"
	"strings"
)

// A tree is an immutable set of Nodes in the order of their paths: a persistent treap. A
// tree that with or without returns shares all but the way to the Node with the tree that it was made
// of. So an old tree stays as it was, for free.
type tree struct {
	root *branch
	len  int
}

// A branch is immutable once the call that made it has returned.
type branch struct {
	node        *Node // immutable
	left, right *branch
	priority    uint32 // not above its parent's: random, so that the tree is balanced
}

// get returns the Node at path, nil if there is none.
func (t tree) get(path string) *Node {
	for b := t.root; b != nil; {
		switch order := strings.Compare(path, b.node.Path); {
		case order == 0:
			return b.node
		case order < 0:
			b = b.left
		default:
			b = b.right
		}
	}
	return nil
}

// with returns the tree with n in the place of the Node at its path.
func (t tree) with(n *Node) tree {
	added := 0
	if t.get(n.Path) == nil {
		added = 1
	}
	return tree{t.root.with(n), t.len + added}
}

// without returns the tree without the Node at path.
func (t tree) without(path string) tree {
	if t.get(path) == nil {
		return t
	}
	return tree{t.root.without(path), t.len - 1}
}

// from returns the Nodes whose paths are at or after path, in their order.
func (t tree) from(path string) iter.Seq[*Node] {
	return func(yield func(*Node) bool) { t.root.ascend(path, yield) }
}

func (b *branch) with(n *Node) *branch {
	if b == nil {
		return &branch{node: n, priority: rand.Uint32()}
	}
	c := *b
	switch order := strings.Compare(n.Path, b.node.Path); {
	case order == 0:
		c.node = n
	case order < 0:
		l := b.left.with(n)
		if c.left = l; l.priority > c.priority {
			c.left, l.right = l.right, &c
			return l
		}
	default:
		r := b.right.with(n)
		if c.right = r; r.priority > c.priority {
			c.right, r.left = r.left, &c
			return r
		}
	}
	return &c
}

// without needs a Node at path.
func (b *branch) without(path string) *branch {
	c := *b
	switch order := strings.Compare(path, b.node.Path); {
	case order == 0:
		return join(b.left, b.right)
	case order < 0:
		c.left = b.left.without(path)
	default:
		c.right = b.right.without(path)
	}
	return &c
}

// join returns the branch of all Nodes of a and b, where those of a come first.
func join(a, b *branch) *branch {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		c := *a
		c.right = join(a.right, b)
		return &c
	default:
		c := *b
		c.left = join(a, b.left)
		return &c
	}
}

func (b *branch) ascend(from string, yield func(*Node) bool) bool {
	if b == nil {
		return true
	}
	if order := strings.Compare(from, b.node.Path); order <= 0 {
		if order < 0 && !b.left.ascend(from, yield) || !yield(b.node) {
			return false
		}
	}
	return b.right.ascend(from, yield)
}
