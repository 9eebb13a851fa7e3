package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/cachetest"
)

// cachedRoot is the root of a tree that all workers change, and of which each has a cache.
const cachedRoot = "/cached"

// pair are znodes that a transaction always writes together.
var pair = [2]string{cachedRoot + "/pair-a", cachedRoot + "/pair-b"}

// The kinds of reports of a cache, whose name is the Lease of the report: an event, which the note
// says, and a snapshot, which shows the Tree.
const (
	cacheEvent    history.Kind = "event"
	cacheSnapshot history.Kind = "snapshot"
)

// The checks of workers on their caches, as counts.
const (
	replayed = "replayed a cache's events to its snapshot"
	sawStale = "saw a cache become stale"
)

func (w *worker) caches() []errand {
	return []errand{{"tree writer", w.writeTree, shortRest * 4}, {"cache", w.cached, longRest}}
}

// treePaths returns the paths that may exist, parents first.
func treePaths() []string {
	paths := []string{cachedRoot, pair[0], pair[1]}
	for _, dir := range "xyz" {
		at := fmt.Sprintf("%s/%c", cachedRoot, dir)
		paths = append(paths, at, at+"/1", at+"/2")
	}
	return paths
}

// treeLimit bounds one request about the tree.
const treeLimit = 3 * time.Second

// writeTree makes one change. The server refuses many, because other workers write, too.
func (w *worker) writeTree(ctx context.Context, t task) {
	ctx, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	data := fmt.Appendf(nil, "%s %d", w.Name, t.rand.Uint64())
	if t.rand.IntN(3) == 0 {
		w.writePair(ctx, data)
		return
	}
	paths := treePaths()[3:]
	path := paths[t.rand.IntN(len(paths))]
	switch t.rand.IntN(5) {
	case 0:
		_ = w.client.Delete(ctx, path)
	case 1:
		_, _ = w.client.Create(ctx, path, data, framework.WithParents())
	case 2:
		w.recreate(ctx, path[:len(cachedRoot)+2], data)
	default:
		_, _ = w.client.Set(ctx, path, data, framework.AnyVersion)
	}
}

// recreate deletes a directory with its children, and creates it again with one child.
func (w *worker) recreate(ctx context.Context, dir string, data []byte) {
	for _, path := range []string{dir + "/1", dir + "/2", dir} {
		if err := w.client.Delete(ctx, path); err != nil && !errors.Is(err, framework.ErrNoNode) {
			return
		}
	}
	_, _ = w.client.Create(ctx, dir+"/1", data, framework.WithParents())
}

func (w *worker) writePair(ctx context.Context, data []byte) {
	_, err := w.client.Txn(ctx, framework.OpSet(pair[0], data, framework.AnyVersion),
		framework.OpSet(pair[1], data, framework.AnyVersion))
	if errors.Is(err, framework.ErrNoNode) {
		_, _ = w.client.Create(ctx, cachedRoot, nil)
		_, _ = w.client.Txn(ctx, framework.OpCreate(pair[0], data), framework.OpCreate(pair[1], data))
	}
}

// A cacheLife is the life of one cache.
type cacheLife struct {
	*worker
	name    string
	cache   *cache.Cache
	journal *cachetest.Journal
}

// cached has a cache for a while, and reports what it shows. When the run ends, the last report waits
// for the ensemble.
func (w *worker) cached(ctx context.Context, t task) {
	made, err := cache.New(w.client, cachedRoot)
	if err != nil {
		panic(err)
	}
	x := &cacheLife{worker: w, name: fmt.Sprintf("%s cache %d", w.Name, t.rand.Uint64()), cache: made, journal: cachetest.NewJournal(cachedRoot)}
	made.OnEvent(x.event)
	var looking sync.WaitGroup
	looking.Go(func() {
		for s := range made.Snapshots(context.Background()) { // until Close
			x.snapshot(s, 0)
		}
	})
	for range 1 + t.rand.IntN(60) {
		x.sync(ctx)
		x.checkStale(ctx)
		pause(ctx, t.between(0, longRest))
	}
	if ctx.Err() != nil && !await(context.Background(), endWait, func() bool { return x.sync(context.Background()) }) {
		_, stale := x.cache.Stale()
		x.found("complete", "all is well, and Sync failed for %v (stale: %v)", endWait, stale)
	}
	x.replay()
	if err := made.Close(); err != nil {
		w.found("leaves nothing", "%v", err)
	}
	looking.Wait()
}

// endWait is how long a cache may take, when the ensemble and all connections are whole again.
const endWait = 15 * time.Second

func (x *cacheLife) event(e cache.Event) {
	x.journal.Add(e)
	r := report{Record: history.Record{Kind: cacheEvent, Lease: x.name, Note: e.Kind.String()}}
	switch e.Kind {
	case cache.Stale:
		x.did(sawStale)
	case cache.Added, cache.Changed:
		r.Znode = shownOf(e.New)
	case cache.Removed:
		r.Znode = shownOf(e.Old)
	}
	x.emit(r)
}

func (x *cacheLife) snapshot(s *cache.Snapshot, since int64) {
	r := report{Record: history.Record{Kind: cacheSnapshot, Lease: x.name}, Settled: s.Settled(), Since: since}
	for _, n := range s.All() {
		r.Tree = append(r.Tree, shownOf(n))
	}
	x.emit(r)
}

func shownOf(n cache.Node) shown {
	return shown{strings.Clone(n.Path), n.Stat.Czxid, n.Stat.Mzxid, fingerprint(n.Data)}
}

// sync writes to the tree, has the cache Sync, and reports its snapshot. It reports whether it could.
func (x *cacheLife) sync(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	written, err := x.client.Set(ctx, cachedRoot, []byte(x.Name), framework.AnyVersion)
	if err != nil {
		return false
	}
	if err := x.cache.Sync(ctx); err != nil {
		if ctx.Err() == nil {
			x.found("complete", "Sync returned %v", err)
		}
		return false
	}
	x.snapshot(x.cache.Snapshot(), written.Mzxid)
	return true
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

// replay is the validator of "every change told". Writes pause again and again for longer than the
// events take.
func (x *cacheLife) replay() {
	leads := func() bool { return x.journal.LeadsTo(x.cache.Snapshot()) }
	if !await(context.Background(), endWait, leads) {
		x.found("every change told", "the events do not lead to the snapshot: %q", x.journal.Lines())
	}
	if err := x.journal.Err(); err != nil {
		x.found("every change told", "%v", err)
	}
	x.did(replayed)
}
