package zkserver

import "github.com/docent-go/docent/internal/proto"

// A changeKind says what a change does.
type changeKind int

const (
	changeCreate changeKind = iota + 1
	changeDelete
	changeData
	changeACL
	changeNothing // a check that has held
)

// A change is one step of a transaction. It has been checked: applying it can't
// fail.
type change struct {
	// Set when it is applied: the access lists of the node and its parent, which decide which
	// clients are notified.
	nodeACL, parentACL []acl

	kind           changeKind
	path           string
	data           []byte
	acl            []acl
	owner          int64
	version        int32 // the new one
	parentCversion int32 // the new one
}

// A txn is a decision of the leader's that every replica applies. A failed request is a
// transaction without changes: it takes a zxid nevertheless.
type txn struct {
	zxid    int64
	time    int64 // milliseconds since 1970
	changes []change
}

// An eventType is the type of a watch event on the wire.
type eventType int32

const (
	eventCreated         eventType = 1
	eventDeleted         eventType = 2
	eventDataChanged     eventType = 3
	eventChildrenChanged eventType = 4
)

// apply carries out the changes and returns the stat that each leaves behind, for
// the reply. A tree never goes back: the zxid of an older transaction is ignored.
func (t *tree) apply(x *txn) []proto.Stat {
	t.zxid = max(t.zxid, x.zxid)
	stats := make([]proto.Stat, len(x.changes))
	for i := range x.changes {
		stats[i] = t.applyChange(x, &x.changes[i])
	}
	return stats
}

func (t *tree) applyChange(x *txn, c *change) proto.Stat {
	switch c.kind {
	case changeCreate:
		return t.applyCreate(x, c)
	case changeDelete:
		t.applyDelete(x, c)
	case changeData:
		n := t.nodes[c.path]
		c.nodeACL = n.acl
		n.data = c.data
		n.stat.Version, n.stat.Mzxid, n.stat.Mtime = c.version, x.zxid, x.time
		return n.shown()
	case changeACL:
		n := t.nodes[c.path]
		n.acl = c.acl
		n.stat.Aversion = c.version
		return n.shown()
	}
	return proto.Stat{}
}

func (t *tree) applyCreate(x *txn, c *change) proto.Stat {
	parentPath, name := parentOf(c.path)
	parent := t.nodes[parentPath]
	c.nodeACL, c.parentACL = c.acl, parent.acl
	// ZooKeeper 3.8 takes a counter that has wrapped for one of the past and keeps
	// the largest: the sequence number 2147483647 is given again and again.
	if t.wrap || c.parentCversion > parent.stat.Cversion {
		parent.stat.Cversion = c.parentCversion
		parent.stat.Pzxid = x.zxid
	}
	parent.addChild(name)
	n := &node{data: c.data, acl: c.acl, stat: proto.Stat{
		Czxid: x.zxid, Mzxid: x.zxid, Pzxid: x.zxid,
		Ctime: x.time, Mtime: x.time, EphemeralOwner: c.owner,
	}}
	t.nodes[c.path] = n
	switch kind := kindOf(c.owner); {
	case kind.reapable():
		t.reapable[c.path] = struct{}{}
	case kind == ownerSession:
		if t.ephemerals[c.owner] == nil {
			t.ephemerals[c.owner] = map[string]struct{}{}
		}
		t.ephemerals[c.owner][c.path] = struct{}{}
	}
	return n.shown()
}

func (t *tree) applyDelete(x *txn, c *change) {
	parentPath, name := parentOf(c.path)
	parent := t.nodes[parentPath]
	c.nodeACL, c.parentACL = t.nodes[c.path].acl, parent.acl
	delete(parent.children, name)
	parent.stat.Pzxid = max(parent.stat.Pzxid, x.zxid)
	owner := t.nodes[c.path].stat.EphemeralOwner
	delete(t.nodes, c.path)
	delete(t.reapable, c.path)
	if owned := t.ephemerals[owner]; owned != nil {
		delete(owned, c.path)
		if len(owned) == 0 {
			delete(t.ephemerals, owner)
		}
	}
}
