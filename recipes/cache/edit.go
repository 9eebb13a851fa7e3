package cache

import (
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/usercall"
)

// An edit is a new tree under construction, with the events that lead to it.
type edit struct {
	loop   *loop
	tree   tree
	events []Event
}

func (l *loop) edit() *edit { return &edit{loop: l, tree: l.cache.view.Load().tree} }

func (e *edit) publish(settled bool) { e.loop.cache.publish(e.tree, e.events, settled) }

// apply makes what was seen part of the cache, and then the changes that the source notified of
// meanwhile. Before those, a sight is of no use if the znode was deleted: whether it was
// seen before or after that can't be known.
func (l *loop) apply(sights []*sight, changes []framework.Change) {
	gone := make(map[string]bool)
	for _, change := range changes {
		if change.Kind == framework.EventDeleted {
			gone[change.Path] = true
		}
	}
	e := l.edit()
	for _, s := range sights {
		if !covers(gone, s.path) {
			e.apply(s)
		}
	}
	for _, s := range sights { // afterwards, because the listings are newer than all that was read
		if n := e.tree.get(s.path); n != nil && n == s.node && (s.listed || s.scope > justData) {
			e.keepChildren(s, gone)
		}
	}
	e.publish(len(changes) == 0 && l.marks.empty())
	l.take(changes)
}

// covers reports whether gone has path or a znode above it.
func covers(gone map[string]bool, path string) bool {
	for len(gone) > 0 {
		if gone[path] {
			return true
		}
		dir, name := framework.SplitPath(path)
		if name == "" {
			return false
		}
		path = dir
	}
	return false
}

func (e *edit) apply(s *sight) {
	c := e.loop.cache
	if s.refusal != nil {
		e.loop.logRefusal(s)
	}
	if s.path == c.path {
		c.setFault(s.refusal)
	} else if dir, _ := framework.SplitPath(s.path); e.tree.get(dir) == nil {
		return // left out; if its parent is added later, that is listed
	}
	old := e.tree.get(s.path)
	if old != nil && (s.node == nil || old.Stat.Czxid != s.node.Stat.Czxid) {
		e.remove(s.path)
		old = nil
	}
	if s.node != nil {
		e.put(old, s.node)
	}
}

// put adds n, or puts it in the place of old.
func (e *edit) put(old, n *Node) {
	switch {
	case old == nil:
		e.events = append(e.events, Event{Kind: Added, New: *n})
	case old.Stat.Mzxid != n.Stat.Mzxid:
		e.events = append(e.events, Event{Kind: Changed, Old: *old, New: *n})
	}
	e.tree = e.tree.with(n)
}

// keepChildren removes the children that were not listed, and marks those that have to be read.
func (e *edit) keepChildren(s *sight, gone map[string]bool) {
	var dead []string
	listed := make(map[string]bool, len(s.names))
	for _, name := range s.names {
		listed[child(s.path, name)] = true
	}
	for n := range e.tree.children(s.path) {
		if !listed[n.Path] {
			dead = append(dead, n.Path)
		}
	}
	for _, path := range dead {
		e.remove(path)
	}
	for _, name := range s.names {
		path := child(s.path, name)
		if gone[path] || s.scope < withAll && e.tree.get(path) != nil || !e.loop.cache.accepts(path) {
			continue
		}
		e.loop.marks.add(path, withAll)
	}
}

// remove removes the znode at path and all below it, children first.
func (e *edit) remove(path string) {
	for _, n := range slices.Backward(e.tree.subtree(path)) {
		e.tree = e.tree.without(n.Path)
		e.events = append(e.events, Event{Kind: Removed, Old: *n})
	}
}

func (l *loop) logRefusal(s *sight) {
	if _, logged := l.refused[s.path]; logged {
		return
	}
	l.refused[s.path] = struct{}{}
	l.cache.log.Warn("znode can't be read: the cache leaves it out, with all below it",
		zap.String(zktel.AttrNodePath, l.cache.client.AbsolutePath(s.path)), zap.Error(s.refusal))
}

// keeps reports whether the znode at path, which is at or below the cache's, belongs to the cache.
func (c *Cache) keeps(path string) bool {
	for at := c.path; at != path; {
		rest := strings.TrimPrefix(path, below(at))
		if len(rest) == len(path) || !c.deepens(at) {
			return false
		}
		name, _, _ := strings.Cut(rest, "/")
		if at = child(at, name); !c.accepts(at) {
			return false
		}
	}
	return true
}

// deepens reports whether the cache has children of the znode at path.
func (c *Cache) deepens(path string) bool {
	return c.cfg.depth == unlimited || c.depthOf(path) < c.cfg.depth
}

// depthOf returns how far path is below the cache's.
func (c *Cache) depthOf(path string) int {
	if path == c.path {
		return 0
	}
	return 1 + strings.Count(path[len(below(c.path)):], "/")
}

// accepts reports whether the filter accepts path.
func (c *Cache) accepts(path string) bool {
	if c.cfg.keep == nil {
		return true
	}
	keep := false
	usercall.Guard(c.log, "WithFilter", func() { keep = c.cfg.keep(path) })
	return keep
}
