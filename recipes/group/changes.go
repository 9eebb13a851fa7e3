package group

import (
	"context"
	"iter"
	"slices"

	"github.com/docent-go/docent/recipes/cache"
)

// latest returns the members of each snapshot.
func (g *Group) latest(ctx context.Context) iter.Seq[[]Member] {
	return func(yield func([]Member) bool) {
		for snapshot := range g.cache.Snapshots(ctx) {
			if !yield(membersOf(snapshot, g.path)) {
				return
			}
		}
	}
}

// membersOf returns the children of path, in the order of their names.
func membersOf(s *cache.Snapshot, path string) []Member {
	var members []Member
	for id, n := range s.Children(path) {
		members = append(members, Member{id, n.Data, n.Stat.Czxid, n.Stat.Mzxid})
	}
	return members
}

// same reports whether nothing has changed from a to b.
func same(a, b []Member) bool {
	return slices.EqualFunc(a, b, func(a, b Member) bool {
		return a.ID == b.ID && a.czxid == b.czxid && a.mzxid == b.mzxid
	})
}
