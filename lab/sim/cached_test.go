package sim_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/cachetest"
)

// cachedRoot is the path of the caches.
const cachedRoot = "/cached"

func cached() *recipe {
	return &recipe{
		name: "cache", live: (*environment).cache, bugs: cacheBugs(),
		guarantees: []guarantee{
			truth, everyChange, complete, oneMoment, knownStaleness, leavesNothing,
		},
		met: []string{
			"cache settled snapshots", "cache unsettled snapshots", "cache syncs", "cache events",
			"cache stale", "cache undisturbed", "cache at the end", "cache closed",
			"cache transactions", "cache left nothing",
		},
	}
}

// A caching is a tree that one writer changes, and the caches of it, one of each client at a time.
type caching struct {
	*task
	past    *past
	writing sync.WaitGroup
}

// cache has the tree written and cached until end is called.
func (env *environment) cache() (end func()) {
	k := &caching{task: env.newTask(), past: env.recordPast(cachedRoot)}
	k.writing.Go(func() { k.write(rand.New(rand.NewPCG(env.plan.clients[0].seed, 10))) })
	k.each(11, k.live)
	return func() {
		k.end()
		k.checkWatches()
	}
}

// write changes the tree, in transactions of up to three operations.
func (k *caching) write(r *rand.Rand) {
	for number := 0; !k.ended(upTo(r, pick(r, k.env.plan.timeout/50, k.env.plan.timeout/2))); {
		k.env.mu.Lock()
		next := maps.Clone(k.past.last())
		k.env.mu.Unlock()
		var ops []framework.TxnOp
		for range 1 + r.IntN(3) {
			number++
			ops = append(ops, operation(r, next, number))
		}
		ctx, cancel := context.WithTimeout(k.env.ctx, k.env.plan.timeout)
		_, err := k.env.operator.Txn(ctx, ops...) // refused if a former one was applied late
		cancel()
		k.env.inspect(err)
		k.env.count("cache transactions", 1)
	}
}

// operation returns an operation that is possible in the state, and applies it to the state. Its
// data is unique.
func operation(r *rand.Rand, s treeState, number int) framework.TxnOp {
	data := fmt.Sprint(canary, number)
	path := cachedRoot
	for range r.IntN(4) {
		if _, ok := s[path]; !ok {
			break
		}
		path += "/" + string(rune('a'+r.IntN(3)))
	}
	_, exists := s[path]
	leaf := !slices.ContainsFunc(slices.Collect(maps.Keys(s)), func(other string) bool {
		return strings.HasPrefix(other, path+"/")
	})
	switch {
	case exists && leaf && r.IntN(2) == 0:
		delete(s, path)
		return framework.OpDelete(path, framework.AnyVersion)
	case exists:
		return framework.OpSet(path, []byte(data), framework.AnyVersion)
	default:
		s[path] = version{}
		return framework.OpCreate(path, []byte(data))
	}
}

// live has one cache after another, each for a while.
func (k *caching) live(c *client, r *rand.Rand) {
	k.throughout(c, func(f *framework.Client) {
		x := &cacheLife{caching: k, client: c, f: f, r: r, seen: map[string]int64{}}
		x.depth = pick(r, -1, -1, -1, 1)
		x.live()
	})
}

// A cacheLife is the life of one cache.
type cacheLife struct {
	*caching
	client  *client
	f       *framework.Client
	r       *rand.Rand
	depth   int // -1 for no limit
	cache   *cache.Cache
	journal *cachetest.Journal

	// used by the goroutine of watch alone
	seen  map[string]int64 // the Mzxid that each znode was shown with last
	state int              // the number of the state of the last settled snapshot
}

func (x *cacheLife) live() {
	var opts []cache.Option
	if x.depth >= 0 {
		opts = append(opts, cache.WithDepth(x.depth))
	}
	began := x.past.present(x.env)
	var err error
	if x.cache, err = cache.New(x.f, cachedRoot, opts...); err != nil {
		x.env.violated(nothingHidden, "a new Cache: %v", err)
		return
	}
	x.journal = cachetest.NewJournal(cachedRoot)
	x.cache.OnEvent(x.listener())
	var watching sync.WaitGroup
	watching.Go(func() {
		for s := range x.cache.Snapshots(x.env.ctx) {
			x.look(s)
		}
	})
	x.ready(began)
	over := false
	for range 1 + x.r.IntN(8) {
		if over = x.ended(upTo(x.r, x.env.plan.timeout)); over {
			break
		}
		x.act()
	}
	if over || x.ended(0) {
		x.checkEnd()
	}
	x.close()
	watching.Wait()
	if err := x.journal.Err(); err != nil {
		x.env.violated(everyChange, "%s: %v", x.client.name, err)
	}
}

// listener records the events.
func (x *cacheLife) listener() func(cache.Event) {
	listen := func(e cache.Event) {
		x.env.count("cache events", 1)
		if e.Kind == cache.Stale {
			x.env.count("cache stale", 1)
			x.env.inspect(e.Err)
		}
		x.journal.Add(e)
	}
	return x.env.bug.events(listen)
}

// act does one thing with the cache.
func (x *cacheLife) act() {
	switch x.r.IntN(3) {
	case 0:
		x.sync(upTo(x.r, 2*x.env.plan.timeout))
	case 1:
		x.checkStale()
	default:
		x.checkUndisturbed()
	}
}

// ready waits until the cache is filled. began is the number of the state when New was called.
func (x *cacheLife) ready(began int) {
	if err := x.call("Ready", upTo(x.r, 3*x.env.plan.timeout), x.cache.Ready); err == nil {
		x.checkComplete("Ready", x.cache.Snapshot(), began)
	}
}

// sync reports whether Sync returned nil.
func (x *cacheLife) sync(limit time.Duration) bool {
	began := x.past.present(x.env)
	if err := x.call("Sync", limit, x.cache.Sync); err != nil {
		return false
	}
	x.env.count("cache syncs", 1)
	x.checkComplete("Sync", x.cache.Snapshot(), began)
	return true
}

// call is the validator of "nothing hidden" for caches. Only the end of the context, and the end of
// the client, may end a call.
func (x *cacheLife) call(op string, limit time.Duration, fn func(context.Context) error) error {
	ended, err := x.client.within(op+" of a Cache", x.r, limit, fn)
	if err != nil && !ended && !errors.Is(err, framework.ErrClosed) {
		x.env.violated(nothingHidden, "%s of a Cache returned what no documentation names: %v", op, err)
	}
	return err
}

func (x *cacheLife) close() {
	began := time.Now()
	x.env.inspect(x.cache.Close())
	if took := time.Since(began); took > promptly {
		x.env.violated(boundedCalls, "Close of a Cache took %v", took)
	}
	if err := x.cache.Ready(x.env.ctx); !errors.Is(err, framework.ErrClosed) {
		x.env.violated(nothingHidden, "after Close, Ready of a Cache returned %v", err)
	}
	x.env.count("cache closed", 1)
}
