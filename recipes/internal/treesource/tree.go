package treesource

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
)

// A treeSource is one recursive watch.
type treeSource struct {
	*framework.TreeWatch
	client *framework.Client
}

// WatchTree is the Opener for servers that have recursive watches. It returns the Source for others if
// this one has none.
func WatchTree(ctx context.Context, c *framework.Client, path string) (Source, error) {
	w, err := c.WatchTree(ctx, path)
	if errors.Is(err, framework.ErrUnsupported) {
		return WatchEach(ctx, c, path)
	}
	if err != nil {
		return nil, err
	}
	return treeSource{w, c}, nil
}

func (s treeSource) Read(ctx context.Context, paths []string) ([]framework.Read, []error) {
	return s.client.GetEach(ctx, paths...)
}

func (s treeSource) List(ctx context.Context, paths []string) ([][]string, []error) {
	names, _, errs := s.client.ChildrenEach(ctx, paths...)
	return names, errs
}

func (s treeSource) ListWithStat(ctx context.Context, paths []string) ([][]string, []framework.Stat, []error) {
	return s.client.ChildrenEach(ctx, paths...)
}

// Follows is true, because a deletion has an event of its own.
func (s treeSource) Follows(string) bool { return true }

// Lists is for children from before the watch: it notifies of others.
func (s treeSource) Lists(stat *framework.Stat) bool { return stat.NumChildren > 0 }
