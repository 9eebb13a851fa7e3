package cachetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/zktest"
)

// patience bounds what has to happen at some time, on a machine as slow as it may be.
const patience = 30 * time.Second

// A Journal records the events of a cache and replays them. A znode is removed once: a Journal is for
// caches whose client may always read their znodes. Its methods may be called concurrently.
type Journal struct {
	root string // immutable

	mu     sync.Mutex // guards following
	lines  []string
	nodes  map[string]cache.Node
	gone   map[string]int64 // the Czxid of the znode that was removed last, by path
	faults []error
}

// Record returns a journal of the events of c, from those that c begins with for a new listener.
func Record(c *cache.Cache) *Journal {
	j := NewJournal(c.Path())
	c.OnEvent(j.Add)
	return j
}

// NewJournal returns a journal of a cache of the znode at path, for events that the caller adds.
func NewJournal(path string) *Journal {
	return &Journal{root: path, nodes: make(map[string]cache.Node), gone: make(map[string]int64)}
}

// Lines returns the events by now: "ready", "stale", or as in "changed /child=data", with the path
// below the cache's.
func (j *Journal) Lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// Count returns how many of the events by now are the line.
func (j *Journal) Count(line string) (n int) {
	for _, other := range j.Lines() {
		if other == line {
			n++
		}
	}
	return n
}

// Await waits until the last event is the line, or fails the test.
func (j *Journal) Await(t testing.TB, line string) {
	t.Helper()
	zktest.Eventually(t, patience, "the event "+line, func() bool {
		lines := j.Lines()
		return len(lines) > 0 && lines[len(lines)-1] == line
	})
}

// Check waits until the events lead to the snapshot, and fails the test if they do not, or do not
// fit one another. The cache must not change meanwhile.
func (j *Journal) Check(t testing.TB, s *cache.Snapshot) {
	t.Helper()
	zktest.Eventually(t, patience, "the events lead to what the cache has", func() bool { return j.LeadsTo(s) })
	if err := j.Err(); err != nil {
		t.Error(err)
	}
}

// LeadsTo reports whether replaying the events by now gives the snapshot.
func (j *Journal) LeadsTo(s *cache.Snapshot) bool {
	want := maps.Collect(s.All())
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.EqualFunc(j.nodes, want, func(a, b cache.Node) bool {
		return a.Stat.Czxid == b.Stat.Czxid && a.Stat.Mzxid == b.Stat.Mzxid && string(a.Data) == string(b.Data)
	})
}

// Err returns how the events by now do not fit one another, nil if they fit.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(j.faults...)
}

// Add records an event.
func (j *Journal) Add(e cache.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	node := e.New
	if e.Kind == cache.Removed {
		node = e.Old
	}
	switch e.Kind {
	case cache.Ready, cache.Stale:
		j.lines = append(j.lines, e.Kind.String())
		return
	case cache.Added:
		j.added(node)
	case cache.Changed:
		j.changed(e)
	case cache.Removed:
		j.removed(node)
	}
	j.lines = append(j.lines, fmt.Sprintf("%v %s=%s", e.Kind, node.Path[len(j.root):], node.Data))
}

func (j *Journal) fault(format string, args ...any) {
	j.faults = append(j.faults, fmt.Errorf(format, args...))
}

func (j *Journal) added(n cache.Node) {
	dir, _ := zkpath.Split(n.Path)
	if _, ok := j.nodes[dir]; !ok && n.Path != j.root {
		j.fault("%s is added before its parent", n.Path)
	}
	if _, ok := j.nodes[n.Path]; ok {
		j.fault("%s is added although it is there", n.Path)
	}
	if czxid, ok := j.gone[n.Path]; ok && n.Stat.Czxid <= czxid {
		j.fault("%s with the czxid %d is added, although the znode with the czxid %d was removed", n.Path, n.Stat.Czxid, czxid)
	}
	j.nodes[n.Path] = n
}

func (j *Journal) changed(e cache.Event) {
	was, ok := j.nodes[e.New.Path]
	if !ok || was.Stat.Mzxid != e.Old.Stat.Mzxid || was.Stat.Czxid != e.New.Stat.Czxid || e.New.Stat.Mzxid <= was.Stat.Mzxid {
		j.fault("%s changes from %+v to %+v, but was %+v", e.New.Path, e.Old.Stat, e.New.Stat, was.Stat)
	}
	j.nodes[e.New.Path] = e.New
}

func (j *Journal) removed(n cache.Node) {
	if was, ok := j.nodes[n.Path]; !ok || was.Stat.Mzxid != n.Stat.Mzxid {
		j.fault("%s is removed as %+v, but was %+v", n.Path, n.Stat, was.Stat)
	}
	for path := range j.nodes {
		if dir, _ := zkpath.Split(path); dir == n.Path && path != n.Path {
			j.fault("%s is removed before %s", n.Path, path)
		}
	}
	delete(j.nodes, n.Path)
	j.gone[n.Path] = n.Stat.Czxid
}
