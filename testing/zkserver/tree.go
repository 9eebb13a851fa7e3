package zkserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/proto"
)

// A tree is a replica of the nodes. It changes by applying transactions, and never
// otherwise, so replicas that have applied the same transactions are the same. A
// tree is guarded by Server.mu.
type tree struct {
	nodes      map[string]*node // by path; the root is also known as ""
	ephemerals map[int64]map[string]struct{}
	reapable   map[string]struct{} // containers and TTL nodes
	zxid       int64               // of the last transaction applied, failed ones included
	wrap       bool                // immutable; see WithSequenceWrap
}

func newTree(wrap bool) *tree {
	open := []acl{{perms: permAll, id: worldID()}}
	root := &node{acl: open, data: []byte{}}
	proc := &node{acl: open, data: []byte{}}
	root.addChild("zookeeper")
	proc.addChild("config")
	proc.addChild("quota")
	config := &node{acl: []acl{{perms: permRead, id: worldID()}}, data: []byte{}}
	config.stat.Aversion = -1
	return &tree{
		nodes: map[string]*node{
			"":                  root,
			"/":                 root,
			"/zookeeper":        proc,
			"/zookeeper/config": config,
			"/zookeeper/quota":  {acl: open, data: []byte{}},
		},
		ephemerals: map[int64]map[string]struct{}{},
		reapable:   map[string]struct{}{},
		wrap:       wrap,
	}
}

// clone returns a replica that stays as it is while the tree goes on.
func (t *tree) clone() *tree {
	c := &tree{
		nodes:      make(map[string]*node, len(t.nodes)),
		ephemerals: make(map[int64]map[string]struct{}, len(t.ephemerals)),
		reapable:   maps.Clone(t.reapable),
		zxid:       t.zxid,
		wrap:       t.wrap,
	}
	for path, n := range t.nodes {
		copied := *n
		copied.children = maps.Clone(n.children)
		c.nodes[path] = &copied
	}
	c.nodes[""] = c.nodes["/"]
	for session, paths := range t.ephemerals {
		c.ephemerals[session] = maps.Clone(paths)
	}
	return c
}

// paths returns every path but the second name of the root, sorted.
func (t *tree) paths() []string {
	list := slices.Sorted(maps.Keys(t.nodes))
	return list[1:]
}

// ephemeralsOf returns the paths of a session's ephemeral nodes, sorted.
func (t *tree) ephemeralsOf(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemerals[session]))
}

// descendants counts the nodes below path, as getAllChildrenNumber does.
func (t *tree) descendants(path string) int32 {
	if path == "/" {
		return int32(len(t.nodes) - 2)
	}
	count := int32(0)
	for p := range t.nodes {
		if strings.HasPrefix(p, path+"/") {
			count++
		}
	}
	return count
}

// childNames returns the names of n's children in an order that helps no client. ZooKeeper's order
// is that of a hash table too, and clients that rely on a sorted listing must not pass their
// tests. It is the same in every run.
func (n *node) childNames() []string {
	names := slices.Collect(maps.Keys(n.children))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(scramble(a), scramble(b)), strings.Compare(a, b))
	})
	return names
}

// scramble is FNV-1a.
func scramble(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// A change is one step of a transaction. It has been checked: applying it can't
// fail.
type change struct {
	// Set when it is applied: the access lists of the node and its parent, which decide which
	// clients are notified.
	nodeACL, parentACL []acl

	kind           ChangeKind
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
	case Created:
		return t.applyCreate(x, c)
	case Deleted:
		t.applyDelete(x, c)
	case DataSet:
		n := t.nodes[c.path]
		c.nodeACL = n.acl
		n.data = c.data
		n.stat.Version, n.stat.Mzxid, n.stat.Mtime = c.version, x.zxid, x.time
		return n.shown()
	case ACLSet:
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

// parentOf returns the parent of path as the tree knows it, "" for the root, and
// the node's name. Path must have a slash.
func parentOf(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

// hasParent reports whether path can be split by parentOf; the checks here are the
// few that ZooKeeper makes before it looks at anything else.
func hasParent(path string) bool {
	return strings.Contains(path, "/") && !strings.Contains(path, "\x00")
}

// watchPath returns the name under which a node is watched: the root's second name
// is for the tree only.
func watchPath(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// isSpecial reports whether path can't be deleted.
func isSpecial(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}

// validPath reports whether path is a node's full path.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, forbiddenRune)
}

// forbiddenRune reports whether a path can't hold c: control characters, private use
// and specials. ZooKeeper counts in UTF-16: what is beyond 0xffff is made of
// surrogates, which are forbidden too, and so is what isn't UTF-8.
func forbiddenRune(c rune) bool {
	return c <= 0x1f || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0
}
