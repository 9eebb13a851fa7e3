package cachetest

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// rounds is how many faults a cache meets in one run.
const rounds = 12

// Run checks the caches that make makes, as [cache.New] does, in all environments of package zkenv. It
// may return before its subtests have run, because they are parallel.
func Run(t *testing.T, make func(c *framework.Client, path string, opts ...cache.Option) (*cache.Cache, error)) {
	t.Helper()
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel() // most of it waits
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				t.Helper()
				path := "/cachetest-" + rand.Text()
				route := env.Route(t)
				writer := newWriter(env.Client(t), path, seed)
				made, err := make(route.Client(t), path)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := made.Close(); err != nil {
						t.Error(err)
					}
				}()
				run(t, env, route, writer, made)
			})
		})
	}
}

func run(t *testing.T, env *zkenv.Env, route *zkenv.Route, writer *writer, made *cache.Cache) {
	t.Helper()
	journal := Record(made)
	observer := &observer{writer: writer, seen: make(map[string]int)}
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	watching.Go(func() {
		for s := range made.Snapshots(ctx) { //nolint:errcheck // a sequence
			observer.look(t, s)
		}
	})
	for range rounds {
		heal := harm(t, writer, route)
		for range 20 {
			writer.write(ctx, t)
			if writer.random.IntN(8) == 0 {
				env.Quiesce()
			}
		}
		heal()
		for range writer.random.IntN(6) { // while the cache reads everything again
			writer.write(ctx, t)
			if writer.random.IntN(2) == 0 {
				<-time.After(time.Duration(writer.random.IntN(20)) * time.Millisecond) // no event says how far the cache is
			}
		}
		if err := made.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		s := made.Snapshot()
		if got, want := keyOf(s), writer.present(); got != want || !s.Settled() {
			t.Errorf("after Sync the cache has %q (settled: %v), want %q", got, s.Settled(), want)
		}
		journal.Check(t, s)
	}
	cancel()
}

// harm has a fault meet the cache's client, and returns what ends it.
func harm(t testing.TB, writer *writer, route *zkenv.Route) (heal func()) {
	t.Helper()
	none := func() {}
	switch writer.random.IntN(10) {
	case 0:
		route.Cut()
	case 1:
		route.Refuse()
		route.Cut()
		return route.Heal
	case 2:
		route.Expire(t)
	case 3:
		route.Rules().Add(fault.Rule{Op: read(writer), Action: fault.DropReply})
	case 4:
		route.Rules().Add(fault.Rule{Op: fault.AddWatch, Action: fault.DropReply})
		route.Cut()
	case 5:
		route.Rules().Add(fault.Rule{Op: fault.GetChildren, Action: fault.CutBefore})
		route.Cut()
	case 6, 7: // the watch is valid long before anything is read
		route.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.DelayRequest, Delay: 30 * time.Millisecond})
		route.Refuse()
		route.Cut()
		return route.Heal
	case 8:
		route.Rules().Add(fault.Rule{Op: read(writer), Action: fault.DelayReply, Delay: 20 * time.Millisecond, Times: 3})
	}
	return none
}

// read returns one of the requests that read data.
func read(w *writer) fault.Op {
	if w.random.IntN(2) == 0 {
		return fault.GetData
	}
	return fault.MultiRead
}

// An observer checks one snapshot after another.
type observer struct {
	writer *writer
	state  int            // the number of the latest settled snapshot's state
	seen   map[string]int // the number of the write that a znode was last seen with
}

func (o *observer) look(t testing.TB, s *cache.Snapshot) {
	t.Helper()
	for path, n := range s.All() {
		number, err := strconv.Atoi(string(n.Data))
		if err != nil || number < o.seen[path] {
			t.Errorf("%s shows write %q after write %d", path, n.Data, o.seen[path])
		}
		o.seen[path] = number
	}
	if !s.Settled() {
		return
	}
	state, ok := o.writer.index(keyOf(s), o.state)
	if !ok {
		t.Errorf("a settled snapshot is no state that the tree had since the one before: %q", keyOf(s))
		return
	}
	o.state = state
}

func keyOf(s *cache.Snapshot) string {
	state := make(map[string]string)
	for path, n := range s.All() {
		state[path] = string(n.Data)
	}
	return key(state)
}
