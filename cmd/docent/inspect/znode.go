package inspect

import (
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/zkpath"
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

// NamedContenders returns a function that reports whether the name at the end of a path is one of a
// contender.
func NamedContenders() func(path string) bool {
	kinds := []string{leaseKind}
	for _, f := range formats() {
		kinds = append(kinds, f.kinds...)
	}
	return func(path string) bool {
		name := Znode{Path: path}.name()
		return len(name) == kazooID && isKazooName(name) || len(queuenode.Sort([]string{name}, kinds...)) > 0
	}
}

// maxPermits is how many digits the permits of a kazoo semaphore have at most.
const maxPermits = 10

// mayBeLock reports whether a znode that is no contender by its name may be a lock nevertheless: docent's
// unfair mutex, a schedule, or a semaphore of kazoo, whose data are the number of its permits.
func mayBeLock(_ string, stat framework.Stat) bool {
	return stat.EphemeralOwner != 0 || stat.DataLength > 0 && stat.DataLength <= maxPermits || mayHoldRuns(stat)
}

// name returns the last part of the path.
func (z Znode) name() string {
	_, name := zkpath.Split(z.Path)
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
		z.Children = append(z.Children, Znode{Path: zkpath.Join(path, name)})
	}
	return z
}
