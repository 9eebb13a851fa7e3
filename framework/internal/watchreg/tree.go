package watchreg

// maxUnread is how many changes a Tree keeps for Take. If there are more, one Unseen
// replaces them.
const maxUnread = 1 << 16

// A Change is one change of one znode.
type Change struct {
	Path  string // as the ensemble knows it
	Event Event  // Created, Changed, Deleted or Unseen
}

// A Tree is one recursive watch of [Trees].
type Tree struct {
	path  string
	ready chan struct{} // closed when the watch is valid for the first time
	news  chan struct{} // capacity 1: Take has something to return

	// guarded by the mu of Trees
	unread []Change
	met    bool  // ready is closed
	err    error // why it has ended
}

// Path returns the path that was passed to Join.
func (w *Tree) Path() string { return w.path }

// Ready returns a channel that is closed when the watch is valid for the first time.
func (w *Tree) Ready() <-chan struct{} { return w.ready }

// News returns a channel that has a value when [Trees.Take] has something to return.
func (w *Tree) News() <-chan struct{} { return w.news }

// begins records that the watch is valid, maybe again. The caller holds the mu of Trees, as the
// callers of the following methods do.
func (w *Tree) begins() {
	if w.met {
		w.add(Change{w.path, Unseen})
		return
	}
	w.met = true
	close(w.ready)
}

func (w *Tree) add(change Change) {
	if len(w.unread) >= maxUnread {
		w.unread = nil
		change = Change{w.path, Unseen}
	}
	w.unread = append(w.unread, change)
	w.notify()
}

func (w *Tree) ends(err error) {
	if w.err == nil {
		w.err = err
	}
	w.notify()
}

func (w *Tree) notify() {
	select {
	case w.news <- struct{}{}:
	default: // its user has not looked yet, and will see this change too
	}
}
