package zkserver

import "github.com/docent-go/docent/internal/proto"

// watches are the watches of the connections of one front end, guarded by Server.mu.
// The data table also holds the watches on nodes that don't exist.
type watches struct {
	data, child *watchTable
}

func newWatches() *watches {
	return &watches{data: newWatchTable(), child: newWatchTable()}
}

// fire tells the watches of what a change has done, in ZooKeeper's order.
func (w *watches) fire(c *change) {
	switch c.kind {
	case changeCreate:
		parent, _ := parentOf(c.path)
		w.data.fire(c.path, eventCreated, c.nodeACL, nil)
		w.child.fire(watchPath(parent), eventChildrenChanged, c.parentACL, nil)
	case changeDelete:
		parent, _ := parentOf(c.path)
		told := w.data.fire(c.path, eventDeleted, c.nodeACL, nil)
		w.child.fire(c.path, eventDeleted, c.nodeACL, told)
		w.child.fire(watchPath(parent), eventChildrenChanged, c.parentACL, nil)
	case changeData:
		w.data.fire(c.path, eventDataChanged, c.nodeACL, nil)
	}
}

// resume sets the watches of a client that has reconnected. It notifies the client at once of the
// znodes that have changed since the zxid that the client has seen.
func (w *watches) resume(t *tree, c *conn, r *watchResume) {
	for _, path := range r.data {
		switch n := t.nodes[path]; {
		case n == nil:
			c.enqueueEvent(path, eventDeleted)
		case n.stat.Mzxid > r.relativeZxid:
			c.enqueueEvent(path, eventDataChanged)
		default:
			w.data.add(path, c, watchOnce)
		}
	}
	for _, path := range r.exist {
		if t.nodes[path] != nil {
			c.enqueueEvent(path, eventCreated)
		} else {
			w.data.add(path, c, watchOnce)
		}
	}
	for _, path := range r.child {
		switch n := t.nodes[path]; {
		case n == nil:
			c.enqueueEvent(path, eventDeleted)
		case n.stat.Pzxid > r.relativeZxid:
			c.enqueueEvent(path, eventChildrenChanged)
		default:
			w.child.add(path, c, watchOnce)
		}
	}
	for _, path := range r.persistent {
		w.add(path, c, watchPersistent)
	}
	for _, path := range r.persistentTrees {
		w.add(path, c, watchTree)
	}
}

// add sets a watch of a kind that is both on the data and on the children.
func (w *watches) add(path string, c *conn, mode watchMode) {
	w.data.add(path, c, mode)
	w.child.add(path, c, mode)
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
	watcherChildren int32 = 1
	watcherData     int32 = 2
	watcherAny      int32 = 3
)

func (w *watches) remove(path string, c *conn, kind int32) proto.Code {
	var removed bool
	switch kind {
	case watcherChildren:
		removed = w.child.remove(path, c)
	case watcherData:
		removed = w.data.remove(path, c)
	case watcherAny:
		child := w.child.remove(path, c)
		removed = w.data.remove(path, c) || child
	default:
		return proto.CodeMarshallingError
	}
	if !removed {
		return proto.CodeNoWatcher
	}
	return proto.CodeOK
}

func (w *watches) check(path string, kind int32) proto.Code {
	var found bool
	switch kind {
	case watcherChildren:
		found = w.child.has(path)
	case watcherData:
		found = w.data.has(path)
	case watcherAny:
		found = w.child.has(path) || w.data.has(path)
	default:
		return proto.CodeMarshallingError
	}
	if !found {
		return proto.CodeNoWatcher
	}
	return proto.CodeOK
}

func (w *watches) removeConn(c *conn) {
	w.data.removeConn(c)
	w.child.removeConn(c)
}

func (w *watches) count() int { return w.data.count() + w.child.count() }
