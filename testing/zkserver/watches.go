package zkserver

import (
	"strings"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkversion"
)

// watches are the watches of the connections of one front end, guarded by Server.mu.
// The data table also holds the watches on nodes that don't exist.
type watches struct {
	config      *config
	data, child *watchTable
}

func newWatches(cfg *config) *watches {
	return &watches{config: cfg, data: newWatchTable(cfg), child: newWatchTable(cfg)}
}

// fire tells the watches of what a change has done, in ZooKeeper's order.
func (w *watches) fire(zxid int64, c *change) {
	switch c.kind {
	case Created:
		parent, _ := parentOf(c.path)
		w.data.fire(zxid, c.path, eventCreated, c.nodeACL, nil)
		w.child.fire(zxid, watchPath(parent), eventChildrenChanged, c.parentACL, nil)
	case Deleted:
		parent, _ := parentOf(c.path)
		notified := w.data.fire(zxid, c.path, eventDeleted, c.nodeACL, nil)
		w.child.fire(zxid, c.path, eventDeleted, c.nodeACL, notified)
		w.child.fire(zxid, watchPath(parent), eventChildrenChanged, c.parentACL, nil)
	case DataSet:
		w.data.fire(zxid, c.path, eventDataChanged, c.nodeACL, nil)
	}
}

// resume sets the watches of a client that has reconnected. It notifies the client at once of the
// znodes that have changed since the zxid that the client has seen.
func (w *watches) resume(t *tree, c *conn, r *watchResume) {
	w.resumeTable(t, c, r, w.data, r.data, eventDataChanged, func(n *node) int64 { return n.stat.Mzxid })
	for _, path := range r.exist {
		if n := t.nodes[path]; n != nil {
			w.catchUp(c, n, path, eventCreated)
		} else {
			w.data.add(path, c, watchOnce)
		}
	}
	w.resumeTable(t, c, r, w.child, r.child, eventChildrenChanged, func(n *node) int64 { return n.stat.Pzxid })
	for _, path := range r.persistent {
		w.add(path, c, watchPersistent)
	}
	for _, path := range r.persistentTrees {
		w.add(path, c, watchTree)
	}
}

// resumeTable sets the watches of a table on the paths. changed returns the zxid of the latest change of a
// znode that the table's watches are for.
func (w *watches) resumeTable( //nolint:revive // what the tables differ in
	t *tree, c *conn, r *watchResume, table *watchTable, paths []string, event eventType, changed func(*node) int64,
) {
	for _, path := range paths {
		switch n := t.nodes[path]; {
		case n == nil:
			c.enqueueEvent(noZxid, path, eventDeleted)
		case changed(n) > r.relativeZxid:
			w.catchUp(c, n, path, event)
		default:
			table.add(path, c, watchOnce)
		}
	}
}

// catchUp notifies a client of what it has missed of a znode that exists.
func (w *watches) catchUp(c *conn, n *node, path string, event eventType) {
	if !w.config.has(zkversion.FiltersMissed) || permits(n.acl, c.ids, permRead) {
		c.enqueueEvent(noZxid, path, event)
	}
}

// add sets a lasting watch. One of a tree is on the children as well only on older servers.
func (w *watches) add(path string, c *conn, mode watchMode) {
	w.data.add(path, c, mode)
	if mode != watchTree || !w.config.has(zkversion.TreesOmitChildren) {
		w.child.add(path, c, mode)
	}
}

// addPersistent sets a watch that lasts. The modes are the protocol's.
func (w *watches) addPersistent(path string, c *conn, mode int32) proto.Code {
	switch mode {
	case 0:
		w.add(path, c, watchPersistent)
	case 1:
		w.add(path, c, watchTree)
	default:
		return proto.CodeMarshallingError
	}
	return proto.CodeOK
}

// Kinds of watches in removeWatches and checkWatches.
const (
	watcherChildren   int32 = 1
	watcherData       int32 = 2
	watcherAny        int32 = 3
	watcherPersistent int32 = 4
	watcherTree       int32 = 5
)

// aims returns the tables that a kind of watch is in, and its modes there. It returns none if the server
// does not know the kind.
func (w *watches) aims(kind int32) (tables []*watchTable, modes watchMode) {
	all, byMode := watchOnce|watchPersistent|watchTree, w.config.has(zkversion.RemovesByMode)
	standard := all
	if byMode {
		standard = watchOnce
	}
	switch {
	case kind == watcherChildren:
		return []*watchTable{w.child}, standard
	case kind == watcherData:
		return []*watchTable{w.data}, standard
	case kind == watcherAny:
		return []*watchTable{w.child, w.data}, all
	case kind == watcherPersistent && byMode:
		return []*watchTable{w.child, w.data}, watchPersistent
	case kind == watcherTree && byMode:
		return []*watchTable{w.data}, watchTree
	}
	return nil, 0
}

func (w *watches) remove(path string, c *conn, kind int32) proto.Code {
	tables, modes := w.aims(kind)
	if tables == nil {
		return proto.CodeMarshallingError
	}
	var removed bool
	for _, table := range tables {
		removed = table.remove(path, c, modes) || removed
	}
	if !removed {
		return proto.CodeNoWatcher
	}
	return proto.CodeOK
}

// check answers for one client. Older servers answer whether any client watches the path.
func (w *watches) check(path string, c *conn, kind int32) proto.Code {
	tables, modes := w.aims(kind)
	if tables == nil {
		return proto.CodeMarshallingError
	}
	for _, table := range tables {
		if !w.config.has(zkversion.RemovesByMode) && table.has(path) || table.byPath[path][c]&modes != 0 {
			return proto.CodeOK
		}
	}
	return proto.CodeNoWatcher
}

func (w *watches) removeConn(c *conn) {
	w.data.removeConn(c)
	w.child.removeConn(c)
}

func (w *watches) count() int { return w.data.count() + w.child.count() }

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
	byConn map[*conn]map[string]struct{} // for removeConn, which must not look at the watches of all
}

func newWatchTable(cfg *config) *watchTable {
	return &watchTable{
		config: cfg,
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
	if w.config.has(zkversion.ManyWatchesPerPath) {
		mode |= w.byPath[path][c]
	}
	w.byPath[path][c] = mode
	w.byConn[c][path] = struct{}{}
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
	delete(w.byConn[c], path)
	if len(w.byConn[c]) == 0 {
		delete(w.byConn, c)
	}
	return true
}

// removeConn takes every watch of a connection away.
func (w *watchTable) removeConn(c *conn) {
	for path := range w.byConn[c] {
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
