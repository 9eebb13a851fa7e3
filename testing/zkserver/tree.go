package zkserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"
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
