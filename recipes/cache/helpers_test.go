package cache_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/worlds"
	"github.com/docent-go/docent/testing/zktest"
)

// generous bounds what has to happen at some time, on a machine as slow as it may be.
const generous = 30 * time.Second

// A maker is cache.New, or what stands for it.
type maker func(c *framework.Client, path string, opts ...cache.Option) (*cache.Cache, error)

// A scene is one run of a test.
type scene struct {
	*worlds.World
	make maker
	path string // unique
}

// each runs body in each world, with a recursive watch and with two watches for each znode.
func each(t *testing.T, body func(t *testing.T, s *scene), opts ...worlds.Option) {
	t.Helper()
	for name, make := range map[string]maker{"recursive": cache.New, "two watches": cache.NewEach} {
		t.Run(name, func(t *testing.T) {
			worlds.Each(t, func(t *testing.T, w *worlds.World) {
				body(t, &scene{w, make, "/cache-" + rand.Text()})
			}, opts...)
		})
	}
}

// open returns a cache that is closed when the test has ended.
func (s *scene) open(t testing.TB, c *framework.Client, path string, opts ...cache.Option) *cache.Cache {
	t.Helper()
	made, err := s.make(c, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	return made
}

// ready returns a cache that is ready.
func (s *scene) ready(t testing.TB, c *framework.Client, path string, opts ...cache.Option) *cache.Cache {
	t.Helper()
	made := s.open(t, c, path, opts...)
	mustReady(t, made)
	return made
}

func mustReady(t testing.TB, c *cache.Cache) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

func mustSync(t testing.TB, c *cache.Cache) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	if err := c.Sync(ctx); err != nil {
		t.Fatal(err)
	}
}

// contents returns the data of the znodes of a snapshot, by path.
func contents(s *cache.Snapshot) map[string]string {
	found := make(map[string]string)
	for path, n := range s.All() {
		found[path] = string(n.Data)
	}
	return found
}

// want fails the test unless the cache, once synced, has these znodes below the scene's path.
func (s *scene) want(t testing.TB, c *cache.Cache, want map[string]string) {
	t.Helper()
	mustSync(t, c)
	absolute := make(map[string]string)
	for path, data := range want {
		absolute[s.path+path] = data
	}
	if got := contents(c.Snapshot()); !maps.Equal(got, absolute) {
		t.Errorf("the cache has %v, want %v", got, absolute)
	}
}

// create creates a znode, and its missing parents: as persistent ones, because nobody reaps those.
func (s *scene) create(t testing.TB, c *framework.Client, path, data string, opts ...framework.CreateOption) {
	t.Helper()
	full := s.path + path
	for i := 1; i < len(full); i++ {
		if full[i] != '/' {
			continue
		}
		if _, err := c.Create(t.Context(), full[:i], nil); err != nil && !errors.Is(err, framework.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	if _, err := c.Create(t.Context(), full, []byte(data), opts...); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) set(t testing.TB, c *framework.Client, path, data string) {
	t.Helper()
	if _, err := c.Set(t.Context(), s.path+path, []byte(data), framework.AnyVersion); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) delete(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	if err := c.Delete(t.Context(), s.path+path); err != nil {
		t.Fatal(err)
	}
}

// A journal records the events of a cache, and replays them.
type journal struct {
	mu     sync.Mutex
	lines  []string
	nodes  map[string]cache.Node
	faults []string
}

// record records the events of c, with paths relative to path.
func record(c *cache.Cache, path string) *journal {
	j := &journal{nodes: make(map[string]cache.Node)}
	c.OnEvent(func(e cache.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.add(e, path)
	})
	return j
}

// add replays e, which has to fit what was there.
func (j *journal) add(e cache.Event, root string) {
	fail := func(format string, args ...any) { j.faults = append(j.faults, fmt.Sprintf(format, args...)) }
	node := e.New
	if e.Kind == cache.Removed {
		node = e.Old
	}
	old, had := j.nodes[node.Path]
	dir, _ := framework.SplitPath(node.Path)
	switch e.Kind {
	case cache.Ready, cache.Stale:
		j.lines = append(j.lines, e.Kind.String())
		return
	case cache.Added:
		if _, ok := j.nodes[dir]; had || !ok && node.Path != root {
			fail("%s is added although it is there, or its parent is not", node.Path)
		}
		j.nodes[node.Path] = node
	case cache.Changed:
		if !had || old.Stat.Mzxid != e.Old.Stat.Mzxid || node.Stat.Mzxid <= old.Stat.Mzxid || old.Stat.Czxid != node.Stat.Czxid {
			fail("%s changes from %+v, but was %+v", node.Path, e.Old.Stat, old.Stat)
		}
		j.nodes[node.Path] = node
	case cache.Removed:
		if !had || old.Stat.Mzxid != e.Old.Stat.Mzxid {
			fail("%s is removed as %+v, but was %+v", node.Path, e.Old.Stat, old.Stat)
		}
		for path := range j.nodes {
			if up, _ := framework.SplitPath(path); up == node.Path && path != "/" {
				fail("%s is removed before %s", node.Path, path)
			}
		}
		delete(j.nodes, node.Path)
	}
	j.lines = append(j.lines, fmt.Sprintf("%v %s=%s", e.Kind, node.Path[len(root):], node.Data))
}

// all returns the events by now.
func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.lines...)
}

// await waits until the last event is the line.
func (j *journal) await(t testing.TB, line string) {
	t.Helper()
	zktest.Eventually(t, generous, "the event "+line, func() bool {
		lines := j.all()
		return len(lines) > 0 && lines[len(lines)-1] == line
	})
}

// count returns how often the line has come.
func (j *journal) count(line string) (n int) {
	for _, other := range j.all() {
		if other == line {
			n++
		}
	}
	return n
}

// check fails the test unless the events fitted, and lead to the snapshot.
func (j *journal) check(t testing.TB, s *cache.Snapshot) {
	t.Helper()
	want := contents(s)
	zktest.Eventually(t, generous, "the events lead to what the cache has", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		got := make(map[string]string)
		for path, n := range j.nodes {
			got[path] = string(n.Data)
		}
		return maps.Equal(got, want)
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, fault := range j.faults {
		t.Error(fault)
	}
}
