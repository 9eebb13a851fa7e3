package cache

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
)

// A source notifies a cache of changes and reads for it. Only the loop calls it, save that Valid may
// be called by any goroutine.
type source interface {
	// Next returns the next changes, as framework.TreeWatch does. If ctx has ended, it returns
	// those that are there, if any.
	Next(ctx context.Context) ([]framework.Change, error)

	// Valid reports whether no connection has been lost that Next has yet to tell of.
	Valid() bool

	// Read reads the znodes. Changes after that are notified of.
	Read(ctx context.Context, paths []string) ([]framework.Read, []error)

	// List lists the children of the znodes. Creations after that are notified of.
	List(ctx context.Context, paths []string) ([][]string, []error)

	// Lists reports whether a znode, as read, has to be listed to know its children.
	Lists(stat *framework.Stat) bool

	Close()
}

// An opener makes the source of a cache.
type opener func(ctx context.Context, c *Cache) (source, error)

// A treeSource is one recursive watch.
type treeSource struct {
	*framework.TreeWatch
	client *framework.Client
}

// watchTree returns the source for servers that have recursive watches, and that for others if
// this one has none.
func watchTree(ctx context.Context, c *Cache) (source, error) {
	w, err := c.client.WatchTree(ctx, c.path)
	if errors.Is(err, framework.ErrUnsupported) {
		return watchEach(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return treeSource{w, c.client}, nil
}

func (s treeSource) Read(ctx context.Context, paths []string) ([]framework.Read, []error) {
	return s.client.GetEach(ctx, paths...)
}

func (s treeSource) List(ctx context.Context, paths []string) ([][]string, []error) {
	return s.client.ChildrenEach(ctx, paths...)
}

// Lists is for children from before the watch: it notifies of others.
func (s treeSource) Lists(stat *framework.Stat) bool { return stat.NumChildren > 0 }
