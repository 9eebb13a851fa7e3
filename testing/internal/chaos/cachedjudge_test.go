package chaos_test

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
)

// look is the validator of "truth" and "one moment" for one snapshot after another.
func (x *cacheLife) look(s *cache.Snapshot) {
	for path, n := range s.All() {
		if n.Stat.Mzxid < x.seen[path] {
			x.found("truth", "%s of transaction %#x is shown after that of %#x", path, n.Stat.Mzxid, x.seen[path])
		}
		x.seen[path] = n.Stat.Mzxid
	}
	a, _ := s.Get(pair[0])
	b, _ := s.Get(pair[1])
	if !s.Settled() || string(a.Data) == x.pair {
		return
	}
	if x.pair = string(a.Data); x.pair != string(b.Data) {
		x.found("one moment", "a settled snapshot has %q with %q", a.Data, b.Data)
	}
	x.did(sawPair)
}

// compare is the validator of "complete". It reads the tree, has the cache Sync, and reads the tree
// again. It reports whether it could.
func (x *cacheLife) compare(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	marked, err := x.client.Set(ctx, cachedRoot, []byte(x.Name), framework.AnyVersion)
	if err != nil {
		return false
	}
	paths := treePaths()
	before, ok := x.readTree(ctx, paths)
	if !ok {
		return false
	}
	if err := x.cache.Sync(ctx); err != nil {
		if ctx.Err() == nil {
			x.found("complete", "Sync returned %v", err)
		}
		return false
	}
	s := x.cache.Snapshot()
	after, ok := x.readTree(ctx, paths)
	if !ok {
		return false
	}
	for i, path := range paths {
		n, shown := s.Get(path)
		b, a := before[i], after[i]
		switch {
		case b.Czxid == 0 && shown && n.Stat.Czxid <= marked.Mzxid:
			x.found("complete", "%s is shown after Sync, and was deleted before it", path)
		case shown && n.Stat.Mzxid < b.Mzxid:
			x.found("complete", "%s of transaction %#x is shown after Sync, which %#x preceded", path, n.Stat.Mzxid, b.Mzxid)
		case !shown && b.Czxid != 0 && a.Czxid == b.Czxid:
			x.found("complete", "%s is not shown after Sync, and exists since %#x", path, b.Czxid)
		}
	}
	x.did(comparedCache)
	return true
}

// readTree returns the Stats of znodes, zero for those that do not exist.
func (x *cacheLife) readTree(ctx context.Context, paths []string) ([]framework.Stat, bool) {
	reads, errs := x.client.GetEach(ctx, paths...)
	stats := make([]framework.Stat, len(paths))
	for i, err := range errs {
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return nil, false
		}
		if err == nil {
			stats[i] = reads[i].Stat
		}
	}
	return stats, true
}

// checkStale is the validator of "known staleness" for a client that is not connected.
func (x *cacheLife) checkStale(ctx context.Context) {
	for range 20 {
		state := x.client.State()
		if _, stale := x.cache.Stale(); stale || state != framework.Suspended && state != framework.Lost {
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
	x.found("known staleness", "the client is %v for 2 s, and the cache is not stale", x.client.State())
}
