package zkserver

import (
	"maps"
	"strings"
)

// A watchMode says how long a watch lasts and what it covers.
type watchMode int

const (
	watchOnce       watchMode = iota + 1
	watchPersistent           // fires until removed
	watchTree                 // persistent, and covers everything below the path
)

// A watchTable holds the watches of one kind, on data or on children. A connection
// has at most one watch on a path: a later one takes the place of an earlier one,
// whatever its mode. It is guarded by Server.mu.
type watchTable struct {
	byPath map[string]map[*conn]watchMode
	byConn map[*conn]map[string]struct{}
	trees  int // how many watches are watchTree
}

func newWatchTable() *watchTable {
	return &watchTable{
		byPath: map[string]map[*conn]watchMode{},
		byConn: map[*conn]map[string]struct{}{},
	}
}

func (w *watchTable) add(path string, c *conn, mode watchMode) {
	if w.byPath[path] == nil {
		w.byPath[path] = map[*conn]watchMode{}
	}
	if w.byConn[c] == nil {
		w.byConn[c] = map[string]struct{}{}
	}
	w.trees += treesIn(mode) - treesIn(w.byPath[path][c])
	w.byPath[path][c] = mode
	w.byConn[c][path] = struct{}{}
}

// remove takes one watch away and reports whether there was one.
func (w *watchTable) remove(path string, c *conn) bool {
	mode, found := w.byPath[path][c]
	if !found {
		return false
	}
	w.trees -= treesIn(mode)
	delete(w.byPath[path], c)
	if len(w.byPath[path]) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byConn[c], path)
	if len(w.byConn[c]) == 0 {
		delete(w.byConn, c)
	}
	return true
}

// removeConn takes every watch of a connection away.
func (w *watchTable) removeConn(c *conn) {
	for path := range maps.Clone(w.byConn[c]) {
		w.remove(path, c)
	}
}

// has reports whether any client watches path. ZooKeeper 3.8 answers this where it is asked about
// one client.
func (w *watchTable) has(path string) bool { return len(w.byPath[path]) > 0 }

func (w *watchTable) count() int {
	total := 0
	for _, paths := range w.byConn {
		total += len(paths)
	}
	return total
}

// fire ends or keeps every watch that covers the event. It notifies the clients that may read the
// znode and are not in told, so that one deletion notifies no client twice. It returns the clients
// whose watches it has found.
func (w *watchTable) fire(path string, event eventType, readers []acl, told map[*conn]struct{}) map[*conn]struct{} {
	fired := map[*conn]struct{}{}
	for c, mode := range w.byPath[path] {
		if mode == watchTree && event == eventChildrenChanged {
			continue
		}
		fired[c] = struct{}{}
		if mode == watchOnce {
			w.remove(path, c)
		}
	}
	if w.trees > 0 && event != eventChildrenChanged {
		w.fireTrees(path, fired)
	}
	for c := range fired {
		if _, again := told[c]; !again && permits(readers, c.ids, permRead) {
			c.enqueueEvent(path, event)
		}
	}
	return fired
}

// fireTrees adds those who watch the tree of one of path's ancestors.
func (w *watchTable) fireTrees(path string, fired map[*conn]struct{}) {
	for path != "/" {
		path = watchPath(path[:strings.LastIndexByte(path, '/')])
		for c, mode := range w.byPath[path] {
			if mode == watchTree {
				fired[c] = struct{}{}
			}
		}
	}
}

func treesIn(mode watchMode) int {
	if mode == watchTree {
		return 1
	}
	return 0
}
