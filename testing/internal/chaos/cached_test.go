package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/cachetest"
)

// All workers change one tree, and each has a cache of it. A transaction always writes both of pair
// with the same data.
const cachedRoot = "/cached"

var pair = [2]string{cachedRoot + "/pair-a", cachedRoot + "/pair-b"}

// The checks of workers on their caches, as counts.
const (
	comparedCache = "compared a cache with the tree after Sync"
	sawPair       = "saw a settled snapshot with a new pair"
	replayed      = "replayed a cache's events to its snapshot"
	sawStale      = "saw a cache become stale"
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
	switch t.rand.IntN(4) {
	case 0:
		_ = w.client.Delete(ctx, path)
	case 1:
		_, _ = w.client.Create(ctx, path, data, framework.WithParents())
	default:
		_, _ = w.client.Set(ctx, path, data, framework.AnyVersion)
	}
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
	cache   *cache.Cache
	journal *cachetest.Journal

	// used by the goroutine of look alone
	seen map[string]int64 // the Mzxid that each znode was shown with last
	pair string           // the data of the pair
}

// cached has a cache for a while, and checks it. When the run ends, the last check waits for the ensemble.
func (w *worker) cached(ctx context.Context, t task) {
	made, err := cache.New(w.client, cachedRoot)
	if err != nil {
		panic(err)
	}
	x := &cacheLife{worker: w, cache: made, journal: cachetest.NewJournal(cachedRoot), seen: make(map[string]int64)}
	made.OnEvent(func(e cache.Event) {
		if e.Kind == cache.Stale {
			w.did(sawStale)
		}
		x.journal.Add(e)
	})
	var looking sync.WaitGroup
	looking.Go(func() {
		for s := range made.Snapshots(context.Background()) { // until Close
			x.look(s)
		}
	})
	for range 1 + t.rand.IntN(60) {
		x.compare(ctx)
		x.checkStale(ctx)
		pause(ctx, t.between(0, longRest))
	}
	if ctx.Err() != nil {
		x.checkEnd()
	}
	x.replay()
	if err := made.Close(); err != nil {
		w.found("leaves nothing", "%v", err)
	}
	looking.Wait()
}

// endWait is how long a cache may take, when the ensemble and all connections are whole again.
const endWait = 15 * time.Second

func (x *cacheLife) checkEnd() {
	ctx := context.Background()
	if !await(ctx, endWait, func() bool { return x.compare(ctx) }) {
		_, stale := x.cache.Stale()
		x.found("complete", "all is well, and Sync failed for %v (stale: %v)", endWait, stale)
	}
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
