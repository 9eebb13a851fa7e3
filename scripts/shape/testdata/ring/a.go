// Package ring is measured by a test: its files use each other in a ring.
package ring

// A Node is exported and documented.
type Node struct {
	name  string
	other *second
}

// Name has two branches and one short-circuit operator.
func (n *Node) Name() string {
	if n == nil || n.name == "" {
		return "none"
	}
	return n.name
}
