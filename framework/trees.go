package framework

import (
	"slices"
	"sync"
)

// maxUnread is how many changes a TreeWatch keeps for Next. If there are more, one EventUnseen
// replaces them.
const maxUnread = 1 << 16

// trees are a client's TreeWatches. They outlive sessions; the server forgets their watches when
// the connection ends.
type trees struct {
	mu      sync.Mutex // guards following; never held across a request or a callback
	entries map[string]*tree
	session *session // whose connection the watches are set on
	link    int      // counts that session's connections
}

// A tree has all TreeWatches of one path.
type tree struct {
	watches []*TreeWatch
	valid   bool // the server of the present connection has the watch
}

// join adds w.
func (t *trees) join(w *TreeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil {
		t.entries = make(map[string]*tree)
	}
	e := t.entries[w.path]
	if e == nil {
		e = &tree{}
		t.entries[w.path] = e
	}
	e.watches = append(e.watches, w)
	if e.valid {
		w.begins()
	}
}

// leave ends w.
func (t *trees) leave(w *TreeWatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[w.path]; e != nil {
		e.watches = slices.DeleteFunc(e.watches, func(other *TreeWatch) bool { return other == w })
	}
	w.ends(ErrClosed)
}

// take returns the changes that w has for Next.
func (t *trees) take(w *TreeWatch) ([]Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes := w.unread
	w.unread = nil
	return changes, w.err
}

// valid reports whether the server of the present connection has the watch of w.
func (t *trees) valid(w *TreeWatch) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[w.path]
	return w.err == nil && e != nil && e.valid
}

// fire notifies the TreeWatches that the event concerns. It runs on a goroutine of the wire client,
// in the connection's order, and does not block. It reports whether a TreeWatch is on the parent of
// path. If so, watches on the children of that parent have to be notified, too.
func (t *trees) fire(kind EventKind, path string) (onParent bool) {
	if kind != EventCreated && kind != EventChanged && kind != EventDeleted {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 {
		return false
	}
	for at, done := path, false; !done; at, _ = SplitPath(at) {
		done = at == "/"
		if e := t.entries[at]; e != nil {
			for _, w := range e.watches {
				w.add(Change{Path: w.client.viewPath(path), Kind: kind})
			}
		}
	}
	dir, _ := SplitPath(path)
	return t.entries[dir] != nil
}

// sever records that the connection of s is lost, and the watches with it.
func (t *trees) sever(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == s {
		t.severLocked()
	}
}

func (t *trees) severLocked() {
	t.link++
	for _, e := range t.entries {
		e.valid = false
	}
}

// A treeJob is a watch to set or to remove on the connection link.
type treeJob struct {
	path string
	set  bool
	link int
}

// next returns the next job for the connection of s, if there is one. A watch that is to be removed
// is invalid from then on.
func (t *trees) next(s *session) (job treeJob, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != s {
		t.session = s
		t.severLocked()
	}
	for path, e := range t.entries {
		switch wanted := len(e.watches) > 0; {
		case !wanted:
			delete(t.entries, path)
			if e.valid {
				return treeJob{path: path, link: t.link}, true
			}
		case !e.valid:
			return treeJob{path: path, set: true, link: t.link}, true
		}
	}
	return treeJob{}, false
}

// done records that a watch is set, unless the connection that it was set on is lost.
func (t *trees) done(job treeJob) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[job.path]
	if !job.set || e == nil || job.link != t.link {
		return
	}
	e.valid = true
	for _, w := range e.watches {
		w.begins()
	}
}

// refuse ends the TreeWatches on a path, because of err.
func (t *trees) refuse(path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[path]; e != nil {
		for _, w := range e.watches {
			w.ends(err)
		}
		e.watches = nil
	}
}

// begins records that the watch is valid, maybe again. The caller holds the mu of trees, as the
// callers of the following methods do.
func (w *TreeWatch) begins() {
	if w.met {
		w.add(Change{Path: w.client.viewPath(w.path), Kind: EventUnseen})
		return
	}
	w.met = true
	close(w.ready)
}

func (w *TreeWatch) add(change Change) {
	if len(w.unread) >= maxUnread {
		w.unread = nil
		change = Change{Path: w.client.viewPath(w.path), Kind: EventUnseen}
	}
	w.unread = append(w.unread, change)
	w.notify()
}

func (w *TreeWatch) ends(err error) {
	if w.err == nil {
		w.err = err
	}
	w.notify()
}

func (w *TreeWatch) notify() {
	select {
	case w.news <- struct{}{}:
	default: // Next has not looked yet, and will see this change too
	}
}
