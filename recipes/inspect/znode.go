package inspect

import (
	"github.com/docent-go/docent/framework"
)

// A Znode is what was read of a znode and of those below it, for [Of].
type Znode struct {
	Path     string
	Data     []byte
	Stat     framework.Stat // zero if only the name was read
	Children []Znode        // in any order

	// Queue is the znode at Path + "-__lock__" with its children, nil if there is none. The waiters of
	// a kazoo semaphore queue there.
	Queue *Znode
}

// name returns the last part of the path.
func (z Znode) name() string {
	_, name := framework.SplitPath(z.Path)
	return name
}

// child returns the child with the name.
func (z Znode) child(name string) (Znode, bool) {
	for _, child := range z.Children {
		if child.name() == name {
			return child, true
		}
	}
	return Znode{}, false
}

// directory returns a znode with children of which the names alone are known.
func directory(path string, names []string) Znode {
	z := Znode{Path: path}
	for _, name := range names {
		z.Children = append(z.Children, Znode{Path: framework.JoinPath(path, name)})
	}
	return z
}
