package group

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/recipes/cache"
)

// maxSettles is how many times the settle time changes can delay each other.
const maxSettles = 10

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

// settled returns the members at first, and then whenever they have not changed for a while.
func (g *Group) settled(ctx context.Context) iter.Seq[[]Member] {
	return func(yield func([]Member) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var follower sync.WaitGroup
		defer follower.Wait()
		defer cancel()
		seen := make(chan []Member)
		follower.Go(func() { // ends with ctx or the cache
			defer close(seen)
			for members := range g.latest(ctx) {
				select {
				case seen <- members:
				case <-ctx.Done():
					return
				}
			}
		})
		members, open := <-seen
		for open && yield(members) {
			members, open = g.settle(seen, members)
		}
	}
}

// settle waits for a change from before, and until nothing has changed for a while. It reports false
// if there are no more changes.
func (g *Group) settle(seen <-chan []Member, before []Member) (members []Member, open bool) {
	var quiet, limit <-chan time.Time
	for members = before; ; {
		select {
		case next, open := <-seen:
			if !open {
				return nil, false
			}
			if same(next, members) {
				continue
			}
			if limit == nil {
				limit = time.After(maxSettles * g.cfg.settle)
			}
			quiet, members = time.After(g.cfg.settle), next
		case <-quiet:
			return members, true
		case <-limit:
			return members, true
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
