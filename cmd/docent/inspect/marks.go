package inspect

import (
	"sync"

	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/cache"
)

// marks are the paths whose locks may have changed. Its methods may be called concurrently.
type marks struct {
	changed chan struct{} // of size 1: there is something to do

	mu    sync.Mutex // guards following
	paths map[string]struct{}
}

func newMarks() marks {
	return marks{changed: make(chan struct{}, 1), paths: make(map[string]struct{})}
}

// add marks what a cache's event may change: the znode itself and its directory.
func (m *marks) add(e cache.Event) {
	if path := e.Path(); path != "" {
		m.mu.Lock()
		dir, _ := zkpath.Split(path)
		m.paths[path], m.paths[dir] = struct{}{}, struct{}{}
		m.mu.Unlock()
	}
	m.wake()
}

func (m *marks) wake() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// take returns the marks, and forgets them.
func (m *marks) take() map[string]struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	paths := m.paths
	m.paths = make(map[string]struct{})
	return paths
}
