package pathtree

import (
	"iter"
	"strings"
)

// Below returns what the paths of all znodes below path begin with.
func Below(path string) string {
	if path == "/" {
		return path
	}
	return path + "/"
}

// Children returns the children of the znode at path with their names, in the order of these.
func (t Tree[T]) Children(path string) iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		prefix := Below(path)
		for next := prefix; next != ""; {
			start := next
			next = ""
			for at, value := range t.From(start) {
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

// Subtree returns the value at path and all below it, parents first.
func (t Tree[T]) Subtree(path string) []*T {
	var found []*T
	if value := t.Get(path); value != nil {
		found = append(found, value)
	}
	prefix := Below(path)
	for at, value := range t.From(prefix) {
		if !strings.HasPrefix(at, prefix) {
			break
		}
		if at != path {
			found = append(found, value)
		}
	}
	return found
}
