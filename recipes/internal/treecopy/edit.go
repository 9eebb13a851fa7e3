package treecopy

import (
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/recipes/internal/extent"
	"github.com/docent-go/docent/recipes/internal/pathtree"
	"github.com/docent-go/docent/recipes/internal/readlist"
	"github.com/docent-go/docent/recipes/internal/treesource"
)

// A sight is what a look at one znode found.
type sight struct {
	*readlist.Mark
	treesource.Sight
	znode *Znode // nil if there is no znode, or it can't be read
}

// An edit is a new tree under construction, with the changes that lead to it.
type edit struct {
	loop    *Loop
	tree    pathtree.Tree[Znode]
	unread  pathtree.Tree[Refusal]
	changes []Change
}

func (l *Loop) edit() *edit { return &edit{loop: l, tree: l.tree, unread: l.unread} }

func (e *edit) publish(settled bool) {
	e.loop.tree, e.loop.unread = e.tree, e.unread
	e.loop.opts.Publish(Copy{
		Tree: e.tree, Unread: e.unread, Settled: settled && !e.loop.rootRefused,
		LeftOut: e.loop.numberOut + e.loop.moreOut,
	}, e.changes)
}

// apply makes what was seen part of the copy, and then the changes that the source notified of
// meanwhile. Before those, a sight is of no use if the znode was deleted: whether it was
// seen before or after that can't be known.
func (l *Loop) apply(sights []*sight, changes []framework.Change) {
	if l.rootRefused && slices.ContainsFunc(sights, l.showsRoot) {
		l.opts.Refused(nil)
		l.begin() // meanwhile it followed no changes
		l.take(changes)
		return
	}
	gone := make(map[string]bool)
	for _, change := range changes {
		if change.Kind == framework.EventDeleted {
			gone[change.Path] = true
		}
	}
	e := l.edit()
	parentsFirst := slices.SortedFunc(slices.Values(sights), func(a, b *sight) int { return strings.Compare(a.Path, b.Path) })
	for _, s := range parentsFirst {
		if !extent.Covers(gone, s.Path) {
			e.apply(s)
		}
	}
	for _, s := range sights { // afterwards, because the listings are newer than all that was read
		if n := e.tree.Get(s.Path); n != nil && n == s.znode && (s.Listed || s.Scope > readlist.JustData) {
			e.keepChildren(s, gone)
		}
	}
	e.publish(len(changes) == 0 && l.marks.Empty())
	l.take(changes)
}

// showsRoot reports whether the root could be read.
func (l *Loop) showsRoot(s *sight) bool { return s.Path == l.opts.Extent.Root && s.Refusal == nil }

// take applies deletions, and marks what else has changed.
func (l *Loop) take(changes []framework.Change) {
	e := l.edit()
	for _, change := range changes {
		switch change.Kind {
		case framework.EventUnseen:
			e.publish(false)
			l.begin()
			e = l.edit()
		case framework.EventDeleted:
			l.marks.Revoke(change.Path)
			l.takeBack(framework.SplitPath(change.Path))
			e.remove(change.Path)
			if change.Path == l.opts.Extent.Root {
				l.rootRefused = false
				l.opts.Refused(nil)
			}
		case framework.EventChildrenChanged:
			l.marks.Add(change.Path, readlist.WithNames)
		default:
			if l.opts.Extent.Has(change.Path) {
				l.marks.Add(change.Path, readlist.JustData)
			}
		}
	}
	e.publish(false)
}

func (e *edit) apply(s *sight) {
	if s.Refusal != nil {
		e.loop.logRefusal(s)
	} else {
		e.unread = e.unread.Without(s.Path)
	}
	if s.Path == e.loop.opts.Extent.Root {
		e.loop.rootRefused = s.Refusal != nil
		e.loop.opts.Refused(s.Refusal)
		if s.Refusal != nil { // as in an outage, the copy keeps what it has
			e.refuse(s)
			return
		}
	} else if dir, _ := framework.SplitPath(s.Path); e.tree.Get(dir) == nil || !e.loop.isConfirmed(dir) {
		return // left out; when its parent has been read, that is listed
	}
	e.loop.confirm(s.Path)
	old := e.tree.Get(s.Path)
	if old != nil && (s.znode == nil || old.Stat.Czxid != s.znode.Stat.Czxid) {
		e.remove(s.Path)
		old = nil
	}
	if s.Refusal != nil {
		e.refuse(s)
	}
	switch {
	case s.znode == nil:
	case old == nil && e.readAfterParents(s):
	default:
		e.put(old, s.znode)
	}
}

// readAfterParents has a new znode be read again if a znode above it may have been deleted, and reports
// whether it does. These znodes are read first, in the same place of the list: if they came later, a batch
// of their children could be taken again and again before them.
func (e *edit) readAfterParents(s *sight) bool {
	above := e.loop.unfollowed(s.Path)
	if len(above) == 0 {
		return false
	}
	for _, path := range slices.Backward(above) {
		e.loop.marks.AddBelow(s.Mark, path, readlist.JustData)
	}
	e.loop.marks.AddBelow(s.Mark, s.Path, readlist.WithAll)
	return true
}

// refuse keeps why the znode can't be read.
func (e *edit) refuse(s *sight) {
	if r := e.unread.Get(s.Path); r == nil || r.Err.Error() != s.Refusal.Error() {
		e.unread = e.unread.With(s.Path, &Refusal{Path: s.Path, Err: s.Refusal})
	}
}

// put adds n, or puts it in the place of old.
func (e *edit) put(old, n *Znode) {
	if old == nil || old.Stat.Mzxid != n.Stat.Mzxid {
		e.changes = append(e.changes, Change{old, n})
	}
	e.tree = e.tree.With(n.Path, n)
	e.loop.takeBack(framework.SplitPath(n.Path))
}

// keepChildren removes the children that were not listed, and marks those that have to be read.
func (e *edit) keepChildren(s *sight, gone map[string]bool) {
	listed := make(map[string]bool, len(s.Names))
	for _, name := range s.Names {
		listed[name] = true
	}
	var dead []string
	for name, n := range e.tree.Children(s.Path) {
		if !listed[name] {
			dead = append(dead, n.Path)
		}
	}
	for name, r := range e.unread.Children(s.Path) {
		if !listed[name] {
			dead = append(dead, r.Path)
		}
	}
	for _, path := range dead {
		e.remove(path)
	}
	for name := range e.loop.leftOut[s.Path] {
		if !listed[name] {
			e.loop.takeBack(s.Path, name)
		}
	}
	for _, name := range s.Names {
		path := framework.JoinPath(s.Path, name)
		if gone[path] || s.Scope < readlist.WithAll && e.tree.Get(path) != nil || !e.loop.opts.Extent.Accepts(path) {
			continue
		}
		e.loop.marks.AddBelow(s.Mark, path, readlist.WithAll)
	}
}

// remove removes the znode at path and all below it, children first, and what could not be read there.
func (e *edit) remove(path string) {
	for _, n := range slices.Backward(e.tree.Subtree(path)) {
		e.tree = e.tree.Without(n.Path)
		e.changes = append(e.changes, Change{Old: n})
	}
	for _, r := range e.unread.Subtree(path) {
		e.unread = e.unread.Without(r.Path)
	}
}

func (l *Loop) logRefusal(s *sight) {
	if _, logged := l.refused[s.Path]; logged {
		return
	}
	l.refused[s.Path] = struct{}{}
	l.opts.Log.Warn("znode can't be read: the cache leaves it out, with all below it",
		zap.String(zktel.AttrNodePath, l.opts.Client.AbsolutePath(s.Path)), zap.Error(s.Refusal))
}
