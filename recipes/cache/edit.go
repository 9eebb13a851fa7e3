package cache

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/internal/zkpath"
)

// A result is what was read for a mark.
type result struct {
	*mark
	reading
	znode *Node // nil if there is no znode, or it can't be read
}

// An edit is a new tree under construction, with the events that lead to it.
type edit struct {
	loop   *loop
	tree   pathTree[Node]
	unread pathTree[refusal]
	events []Event
}

func (l *loop) edit() *edit { return &edit{loop: l, tree: l.tree, unread: l.unread.znodes} }

func (e *edit) publish(settled bool) {
	e.loop.tree, e.loop.unread.znodes = e.tree, e.unread
	e.loop.cache.publish(Snapshot{
		tree: e.tree, unread: e.unread, settled: settled && !e.loop.unread.root,
		leftOut: e.loop.out.known + e.loop.out.more,
	}, e.events)
}

// apply adds what was seen to the copy, and then the changes that the watch reported meanwhile. It first
// discards what was seen of a deleted znode, because it is not known whether the read came before or after
// the deletion.
func (l *loop) apply(results []*result, changes []framework.Change) {
	if l.unread.root && slices.ContainsFunc(results, l.showsRoot) {
		l.cache.setFault(nil)
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
	parentsFirst := slices.SortedFunc(slices.Values(results), func(a, b *result) int { return strings.Compare(a.path, b.path) })
	for _, s := range parentsFirst {
		if !covers(gone, s.path) {
			e.apply(s)
		}
	}
	for _, s := range results { // afterwards, because the listings are newer than all that was read
		if n := e.tree.get(s.path); n != nil && n == s.znode && (s.listed || s.scope > justData) {
			e.keepChildren(s, gone)
		}
	}
	e.publish(len(changes) == 0 && l.marks.empty())
	l.take(changes)
}

// showsRoot reports whether the root could be read.
func (l *loop) showsRoot(s *result) bool { return s.path == l.extent.root && s.refusal == nil }

// take applies deletions, and marks what else has changed.
func (l *loop) take(changes []framework.Change) {
	e := l.edit()
	for _, change := range changes {
		switch change.Kind {
		case framework.EventUnseen:
			e.publish(false)
			l.begin()
			e = l.edit()
		case framework.EventDeleted:
			l.marks.revoke(change.Path)
			dir, name := zkpath.Split(change.Path)
			l.out.takeBack(dir, name)
			if l.unread.znodes.get(dir) != nil {
				l.unread.shrunk[dir] = struct{}{}
			}
			e.remove(change.Path)
			if change.Path == l.extent.root {
				l.unread.root = false
				l.cache.setFault(nil)
			}
		case framework.EventChildrenChanged:
			l.marks.add(change.Path, withNames)
		default:
			if l.extent.has(change.Path) {
				l.marks.add(change.Path, justData)
			}
		}
	}
	e.publish(false)
}

func (e *edit) apply(s *result) {
	if s.refusal != nil {
		e.loop.logRefusal(s)
	} else {
		e.unread = e.unread.without(s.path)
	}
	if s.path == e.loop.extent.root {
		e.loop.unread.root = s.refusal != nil
		e.loop.cache.setFault(s.refusal)
		if s.refusal != nil { // as in an outage, the copy keeps what it has
			e.refuse(s)
			return
		}
	} else if dir, _ := zkpath.Split(s.path); e.tree.get(dir) == nil || !e.loop.fill.isConfirmed(dir) {
		return // left out; when its parent has been read, that is listed
	}
	e.loop.fill.confirm(s.path)
	old := e.tree.get(s.path)
	if old != nil && (s.znode == nil || old.Stat.Czxid != s.znode.Stat.Czxid) {
		e.remove(s.path)
		old = nil
	}
	if s.refusal != nil {
		e.refuse(s)
	}
	most := e.loop.bounds.Znodes
	switch {
	case s.znode == nil:
	case old == nil && most > 0 && e.tree.len() >= most: // it could not be read before, and now has no room
		e.loop.leaveOut(s.path)
	default:
		e.put(old, s.znode)
	}
}

// refuse keeps why the znode can't be read.
func (e *edit) refuse(s *result) {
	if r := e.unread.get(s.path); r == nil || r.err.Error() != s.refusal.Error() {
		e.unread = e.unread.with(s.path, &refusal{path: s.path, err: s.refusal})
	}
}

// put adds n, or puts it in the place of old. After a restore of the ensemble one Mzxid may be that of two states.
func (e *edit) put(old, n *Node) {
	switch {
	case old == nil:
		e.events = append(e.events, Event{Kind: Added, New: *n})
	case old.Stat.Mzxid != n.Stat.Mzxid, e.loop.bounds.ByPath == nil && !bytes.Equal(old.Data, n.Data):
		e.events = append(e.events, Event{Kind: Changed, Old: *old, New: *n})
	case bytes.Equal(old.Data, n.Data):
		n.Data = old.Data // by which Values knows the state
	}
	e.tree = e.tree.with(n.Path, n)
	e.loop.out.takeBack(zkpath.Split(n.Path))
}

// keepChildren removes the children that were not listed, and marks those that have to be read.
func (e *edit) keepChildren(s *result, gone map[string]bool) {
	listed := make(map[string]bool, len(s.names))
	for _, name := range s.names {
		listed[name] = true
	}
	var dead []string
	for name, n := range e.tree.children(s.path) {
		if !listed[name] {
			dead = append(dead, n.Path)
		}
	}
	for name, r := range e.unread.children(s.path) {
		if !listed[name] {
			dead = append(dead, r.path)
		}
	}
	for _, path := range dead {
		e.remove(path)
	}
	for name := range e.loop.out.names[s.path] {
		if !listed[name] {
			e.loop.out.takeBack(s.path, name)
		}
	}
	for _, name := range s.names {
		path := zkpath.Join(s.path, name)
		if gone[path] || s.scope < withAll && e.tree.get(path) != nil || !e.loop.extent.accepts(path) {
			continue
		}
		e.loop.marks.addBelow(s.mark, path, withAll)
	}
}

// remove removes the znode at path and all below it, children first, and what could not be read there.
func (e *edit) remove(path string) {
	for _, n := range slices.Backward(e.tree.subtree(path)) {
		e.tree = e.tree.without(n.Path)
		e.events = append(e.events, Event{Kind: Removed, Old: *n})
	}
	for _, r := range e.unread.subtree(path) {
		e.unread = e.unread.without(r.path)
	}
}

func (l *loop) logRefusal(s *result) {
	if _, logged := l.unread.logged[s.path]; logged {
		return
	}
	l.unread.logged[s.path] = struct{}{}
	l.cache.log.Warn("znode can't be read: the cache leaves it out, with all below it",
		zap.String(zktel.AttrNodePath, l.cache.client.AbsolutePath(s.path)), zap.Error(s.refusal))
}

// How many znodes are read at a time. A heartbeat of the session queues behind their replies. So a
// fill begins with few, and reads as many at a time as are answered within a small part of the
// session timeout: over a slow link, those are few.
const (
	minBatch      = 8
	maxBatch      = 1000
	maxGrowth     = 4  // from one batch to the next
	batchFraction = 16 // of the session timeout, for one batch
)

// nextBatch returns how many znodes to read after a batch that took a while.
func nextBatch(batch int, took, timeout time.Duration) int {
	if timeout <= 0 {
		timeout = 30 * time.Second // there is no session at the moment
	}
	fits := float64(batch) * float64(timeout/batchFraction) / float64(max(took, time.Microsecond))
	return int(min(max(fits, minBatch), float64(batch*maxGrowth), maxBatch))
}

// pause is the time between a failure and the next attempt.
const pause = 500 * time.Millisecond

// readOldest reads the oldest marks and applies what it found. It returns an error if the client is closed.
func (l *loop) readOldest(ctx context.Context) error {
	if l.invalid || l.marks.empty() {
		return nil
	}
	if l.fill.mustSync { // so that reads see all that has been committed by now
		if err := l.cache.client.Ready(ctx); err != nil {
			return l.fail(ctx, err)
		}
		l.fill.mustSync = false
		l.take(l.drain())
		l.fill.until = l.marks.last()
		return nil
	}
	if err := l.pace(ctx); err != nil {
		return nil //nolint:nilerr // next returns why
	}
	taken, began := l.withinLimit(l.marks.take(l.fill.batch)), time.Now()
	results, err := l.read(ctx, taken)
	if err != nil {
		l.marks.putBack(taken)
		return l.fail(ctx, err)
	}
	if len(taken) == l.fill.batch {
		l.fill.batch = nextBatch(l.fill.batch, time.Since(began), l.cache.client.Session().Timeout)
	}
	valid := l.watch.Valid() // before drain: if it is, what drain returns is all
	changes := l.drain()
	if !valid || slices.ContainsFunc(changes, isUnseen) {
		l.marks.putBack(taken)
		l.invalid = true
		l.take(changes)
		return nil
	}
	l.apply(results, changes)
	return nil
}

func isUnseen(change framework.Change) bool { return change.Kind == framework.EventUnseen }

// read reads what was taken. It returns an error if the ensemble did not answer.
func (l *loop) read(ctx context.Context, taken []*mark) ([]*result, error) {
	wants := make([]want, len(taken))
	for i, k := range taken {
		wants[i] = want{path: k.path, list: l.extent.deepens(k.path), known: noCzxid}
		if old := l.tree.get(k.path); old != nil && k.scope == justData {
			wants[i].known = old.Stat.Czxid
		}
		if l.bounds.ByPath != nil && !l.wants(func() bool { return l.bounds.ByPath(k.path) }) {
			wants[i].data = func(stat *framework.Stat) bool {
				return l.wants(func() bool { return l.bounds.ByStat(k.path, *stat) })
			}
		}
	}
	found, err := readAll(ctx, l.cache.client, wants)
	if err != nil {
		return nil, err
	}
	l.spend(found)
	results := make([]*result, len(taken))
	for i, k := range taken {
		results[i] = &result{mark: k, reading: found[i]}
		if read := found[i].read; read != nil {
			results[i].znode = &Node{Path: k.path, Data: read.Data, Stat: read.Stat}
			if wants[i].data != nil && !wants[i].data(&read.Stat) {
				results[i].znode.Data = nil
			}
		}
	}
	return results, nil
}

// wants calls a function of the user. If it panics, it does not want.
func (l *loop) wants(fn func() bool) (wants bool) {
	usercall.Guard(l.cache.log, "the choice of data", func() { wants = fn() })
	return wants
}

// pace waits until the rate allows another batch. It returns an error if ctx ends first.
func (l *loop) pace(ctx context.Context) error {
	if l.bounds.Rate == 0 {
		return nil
	}
	l.fill.batch = min(l.fill.batch, max(minBatch, l.bounds.Rate/8)) // so that no burst is longer than an eighth of a second
	return pace.Sleep(ctx, time.Until(l.nextBatchAt))
}

// spend counts the requests of a batch for the rate.
func (l *loop) spend(found []reading) {
	if l.bounds.Rate == 0 {
		return
	}
	requests := len(found)
	for i := range found {
		if found[i].listed && found[i].read != nil && found[i].read.Data != nil {
			requests++
		}
	}
	if now := time.Now(); l.nextBatchAt.Before(now) {
		l.nextBatchAt = now
	}
	l.nextBatchAt = l.nextBatchAt.Add(time.Duration(requests) * time.Second / time.Duration(l.bounds.Rate))
}

// withinLimit returns what was taken without new znodes that the limit leaves out.
func (l *loop) withinLimit(taken []*mark) []*mark {
	if l.bounds.Znodes == 0 {
		return taken
	}
	room := l.bounds.Znodes - l.tree.len()
	return slices.DeleteFunc(taken, func(k *mark) bool {
		if l.tree.get(k.path) != nil || l.unread.znodes.get(k.path) != nil || k.path == l.extent.root {
			return false
		}
		if room--; room >= 0 {
			return false
		}
		if dir, _ := zkpath.Split(k.path); l.tree.get(dir) != nil { // else it is below what is left out
			l.leaveOut(k.path)
		}
		return true
	})
}

// leaveOut notes a znode that the limit leaves out. No more are noted than the copy has: of others the
// number alone is known.
func (l *loop) leaveOut(path string) {
	dir, name := zkpath.Split(path)
	_, known := l.out.names[dir][name]
	switch {
	case known:
		return
	case l.out.known >= l.bounds.Znodes:
		l.out.more++
		return
	case l.out.names[dir] == nil:
		l.out.names[dir] = make(map[string]struct{})
	}
	l.out.names[dir][name] = struct{}{}
	l.out.known++
}

// takeBack forgets that the znode was left out.
func (o *leftOut) takeBack(dir, name string) {
	if _, known := o.names[dir][name]; !known {
		return
	}
	delete(o.names[dir], name)
	if o.known--; len(o.names[dir]) == 0 {
		delete(o.names, dir)
	}
}

// markLeftOut marks znodes that were left out, if there is room by now.
func (l *loop) markLeftOut() {
	if l.invalid || l.out.known == 0 || !l.marks.empty() {
		return
	}
	room := l.bounds.Znodes - l.tree.len()
	for dir, names := range l.out.names {
		for name := range names {
			if room--; room < 0 {
				return
			}
			l.out.takeBack(dir, name)
			l.marks.add(zkpath.Join(dir, name), withAll)
		}
	}
}

// fail reports err, and pauses. It returns err if the client
// is closed.
func (l *loop) fail(ctx context.Context, err error) error {
	if errors.Is(err, framework.ErrClosed) {
		return err
	}
	l.cache.setCause(err)
	_ = pace.Sleep(ctx, pause) // the caller sees whether ctx has ended
	return nil
}
