// Package treesource notifies a cache of changes of a part of the tree, and reads for it.
package treesource

import (
	"context"

	"github.com/docent-go/docent/framework"
)

// A Source notifies a cache of changes and reads for it. One goroutine calls it, save that any
// goroutine may call Valid.
type Source interface {
	// Next returns the next changes, as framework.TreeWatch does. If ctx has ended, it returns
	// those that are there, if any.
	Next(ctx context.Context) ([]framework.Change, error)

	// Valid reports whether no connection has been lost that Next has yet to tell of.
	Valid() bool

	// Follows reports whether Next notifies, or has notified, of the deletion of the znode as it was
	// read last.
	Follows(path string) bool

	// Read reads the znodes. Changes after that are notified of.
	Read(ctx context.Context, paths []string) ([]framework.Read, []error)

	// List lists the children of the znodes. Creations after that are notified of.
	List(ctx context.Context, paths []string) ([][]string, []error)

	// Lists reports whether a znode, as read, has to be listed to know its children.
	Lists(stat *framework.Stat) bool

	Close()
}

// A statLister is a Source that needs no read of a znode's data to follow its changes.
type statLister interface {
	// ListWithStat lists the children of the znodes, and reads their Stats.
	ListWithStat(ctx context.Context, paths []string) ([][]string, []framework.Stat, []error)
}

// An Opener makes a Source of the part of the tree at path.
type Opener func(ctx context.Context, c *framework.Client, path string) (Source, error)
