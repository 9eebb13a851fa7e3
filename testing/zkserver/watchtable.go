package zkserver

import (
	"strings"

	"github.com/docent-go/docent/internal/zkversion"
)

// A watchMode says how long a watch lasts and what it covers. Where a connection may have several
// watches on a path, it is the set of their modes.
type watchMode int

const (
	watchOnce       watchMode = 1 << iota
	watchPersistent           // fires until removed
	watchTree                 // persistent, and covers everything below the path
)

// A watchTable holds the watches of one kind, on data or on children. Up to ZooKeeper 3.8, a connection
// has at most one watch on a path: a later one takes the place of an earlier one, whatever its mode.
// The table is guarded by Server.mu.
type watchTable struct {
	config *config
	byPath map[string]map[*conn]watchMode
}

func newWatchTable(cfg *config) *watchTable {
	return &watchTable{config: cfg, byPath: map[string]map[*conn]watchMode{}}
}

func (w *watchTable) add(path string, c *conn, mode watchMode) {
	if w.byPath[path] == nil {
		w.byPath[path] = map[*conn]watchMode{}
	}
	if w.config.has(zkversion.ManyWatchesPerPath) {
		mode |= w.byPath[path][c]
	}
	w.byPath[path][c] = mode
}

// remove takes the watches of the modes away and reports whether there were any.
func (w *watchTable) remove(path string, c *conn, modes watchMode) bool {
	mode := w.byPath[path][c]
	if mode&modes == 0 {
		return false
	}
	if left := mode &^ modes; left != 0 {
		w.byPath[path][c] = left
		return true
	}
	delete(w.byPath[path], c)
	if len(w.byPath[path]) == 0 {
		delete(w.byPath, path)
	}
	return true
}

// removeConn takes every watch of a connection away.
func (w *watchTable) removeConn(c *conn) {
	for path := range w.byPath {
		w.remove(path, c, watchOnce|watchPersistent|watchTree)
	}
}

// has reports whether any client watches path. ZooKeeper 3.8 answers this where it is asked about
// one client.
func (w *watchTable) has(path string) bool { return len(w.byPath[path]) > 0 }

func (w *watchTable) count() int {
	total := 0
	for _, watchers := range w.byPath {
		total += len(watchers)
	}
	return total
}

// fire ends or keeps every watch that covers the event. It notifies the clients that may read the
// znode, if the version filters events, and are not in told, so that one deletion notifies no client twice. It
// returns the clients whose watches it has found.
func (w *watchTable) fire(zxid int64, path string, event eventType, readers []acl, notified map[*conn]struct{}) map[*conn]struct{} {
	fired := map[*conn]struct{}{}
	for c, mode := range w.byPath[path] {
		if mode == watchTree && event == eventChildrenChanged {
			continue
		}
		fired[c] = struct{}{}
		w.remove(path, c, watchOnce)
	}
	if event != eventChildrenChanged {
		w.fireTrees(path, fired)
	}
	for c := range fired {
		readable := !w.config.has(zkversion.FiltersEvents) || permits(readers, c.ids, permRead)
		if _, again := notified[c]; !again && readable {
			c.enqueueEvent(zxid, path, event)
		}
	}
	return fired
}

// fireTrees adds those who watch the tree of one of path's ancestors.
func (w *watchTable) fireTrees(path string, fired map[*conn]struct{}) {
	for path != "/" {
		path = watchPath(path[:strings.LastIndexByte(path, '/')])
		for c, mode := range w.byPath[path] {
			if mode&watchTree != 0 {
				fired[c] = struct{}{}
			}
		}
	}
}
