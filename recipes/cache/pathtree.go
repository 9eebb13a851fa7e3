package cache

import (
	"iter"
	"math/rand/v2"
	"strings"
)

// A pathTree is an immutable set of values in the order of their paths: a persistent treap. A pathTree that
// with or without returns shares all but the path to the value with the one that it was made of. So an
// old one does not change, and costs no copy. Two can be compared: equal ones have the same values.
type pathTree[T any] struct {
	root *branch[T]
	size int
}

// A branch is immutable once the call that made it has returned.
type branch[T any] struct {
	path        string
	value       *T
	left, right *branch[T]
	priority    uint32 // not above its parent's: random, so that the tree is balanced
}

// len returns the number of values.
func (t pathTree[T]) len() int { return t.size }

// get returns the value at path, nil if there is none.
func (t pathTree[T]) get(path string) *T {
	for b := t.root; b != nil; {
		switch order := strings.Compare(path, b.path); {
		case order == 0:
			return b.value
		case order < 0:
			b = b.left
		default:
			b = b.right
		}
	}
	return nil
}

// with returns the tree with the value in the place of the one at path.
func (t pathTree[T]) with(path string, value *T) pathTree[T] {
	added := 0
	if t.get(path) == nil {
		added = 1
	}
	return pathTree[T]{t.root.with(path, value), t.size + added}
}

// without returns the tree without the value at path.
func (t pathTree[T]) without(path string) pathTree[T] {
	if t.get(path) == nil {
		return t
	}
	return pathTree[T]{t.root.without(path), t.size - 1}
}

// from returns the values whose paths are at or after path, in the order of their paths.
func (t pathTree[T]) from(path string) iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) { t.root.ascend(path, yield) }
}

// below returns what the paths of all znodes below path begin with.
func below(path string) string {
	if path == "/" {
		return path
	}
	return path + "/"
}

// children returns the children of the znode at path with their names, in the order of these.
func (t pathTree[T]) children(path string) iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		prefix := below(path)
		for next := prefix; next != ""; {
			start := next
			next = ""
			for at, value := range t.from(start) {
				if at == "/" { // below itself, by its path
					continue
				}
				if !strings.HasPrefix(at, prefix) {
					return
				}
				name, _, deeper := strings.Cut(at[len(prefix):], "/")
				if deeper {
					next = prefix + name + "0" // follows "/": behind all that is below that child
					break
				}
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

// subtree returns the value at path and all below it, parents first.
func (t pathTree[T]) subtree(path string) []*T {
	var found []*T
	if value := t.get(path); value != nil {
		found = append(found, value)
	}
	prefix := below(path)
	for at, value := range t.from(prefix) {
		if !strings.HasPrefix(at, prefix) {
			break
		}
		if at != path {
			found = append(found, value)
		}
	}
	return found
}

func (b *branch[T]) with(path string, value *T) *branch[T] {
	if b == nil {
		return &branch[T]{path: path, value: value, priority: rand.Uint32()}
	}
	c := *b
	switch order := strings.Compare(path, b.path); {
	case order == 0:
		c.value = value
	case order < 0:
		l := b.left.with(path, value)
		if c.left = l; l.priority > c.priority {
			c.left, l.right = l.right, &c
			return l
		}
	default:
		r := b.right.with(path, value)
		if c.right = r; r.priority > c.priority {
			c.right, r.left = r.left, &c
			return r
		}
	}
	return &c
}

// without needs a value at path.
func (b *branch[T]) without(path string) *branch[T] {
	c := *b
	switch order := strings.Compare(path, b.path); {
	case order == 0:
		return join(b.left, b.right)
	case order < 0:
		c.left = b.left.without(path)
	default:
		c.right = b.right.without(path)
	}
	return &c
}

// join returns the branch of all values of a and b, where those of a come first.
func join[T any](a, b *branch[T]) *branch[T] {
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

func (b *branch[T]) ascend(from string, yield func(string, *T) bool) bool {
	if b == nil {
		return true
	}
	if order := strings.Compare(from, b.path); order <= 0 {
		if order < 0 && !b.left.ascend(from, yield) || !yield(b.path, b.value) {
			return false
		}
	}
	return b.right.ascend(from, yield)
}
