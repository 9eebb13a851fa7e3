package watchreg

import (
	"slices"
	"strings"
	"sync"
)

// Trees are the recursive watches of a client. They outlive sessions; the server forgets them when
// the connection ends. The methods may be called concurrently and don't block.
type Trees struct {
	mu      sync.Mutex // guards following; never held across a request or a callback
	entries map[string]*treeEntry
	session any // whose connection the watches are set on
	link    int // counts that session's connections
}

// A treeEntry has all Trees of one path.
type treeEntry struct {
	watches []*Tree
	valid   bool  // the server of the present connection has the watch
	refusal error // why a server has not set it; nil while it is valid
}

// Join adds w, for the path and everything below it.
func (t *Trees) Join(w *Tree, path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil {
		t.entries = make(map[string]*treeEntry)
	}
	*w = Tree{path: path, ready: make(chan struct{}), news: make(chan struct{}, 1)}
	e := t.entries[path]
	if e == nil {
		e = &treeEntry{}
		t.entries[path] = e
	}
	e.watches = append(e.watches, w)
	if e.valid {
		w.begins()
	}
}

// Leave ends w with the error.
func (t *Trees) Leave(w *Tree, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[w.path]; e != nil {
		e.watches = slices.DeleteFunc(e.watches, func(other *Tree) bool { return other == w })
	}
	w.ends(err)
}

// Take removes and returns the changes that w has, and the reason why it has ended, or nil.
func (t *Trees) Take(w *Tree) ([]Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes := w.unread
	w.unread = nil
	return changes, w.err
}

// Valid reports whether the server of the present connection has the watch of w.
func (t *Trees) Valid(w *Tree) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[w.path]
	return w.err == nil && e != nil && e.valid
}

// Fire notifies the Trees that the event of the session's connection concerns. Call it in the connection's
// order. What the connection of a former session still delivers is ignored, because it may be older than
// what the present session has read. If a Tree is on the parent of path, the watches on the parent's
// children have to be notified, too: Fire returns the parent then, else "".
func (t *Trees) Fire(session any, event Event, path string) (parent string) {
	if event != Created && event != Changed && event != Deleted {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != session {
		return ""
	}
	for at := path; at != ""; at = parentOf(at) {
		if e := t.entries[at]; e != nil {
			for _, w := range e.watches {
				w.add(Change{path, event})
			}
		}
	}
	parent = parentOf(path)
	if event == Changed || t.entries[parent] == nil {
		return ""
	}
	return parent
}

// parentOf returns the path of the parent, "" for "/". For any path it returns a shorter one, so a
// walk up ends whatever a server sent.
func parentOf(path string) string {
	switch i := strings.LastIndexByte(path, '/'); {
	case i > 0:
		return path[:i]
	case i == 0 && path != "/":
		return "/"
	}
	return ""
}

// Sever records that the connection of the session is lost, and the watches with it. Sessions are
// compared by ==.
func (t *Trees) Sever(session any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == session {
		t.severLocked()
	}
}

func (t *Trees) severLocked() {
	t.link++
	for _, e := range t.entries {
		e.valid = false
	}
}

// A TreeJob is a watch to set or to remove on a connection.
type TreeJob struct {
	Path    string
	Set     bool
	session any
	link    int // which connection of it
}

// Next returns the next job for the connection of the session, if there is one. A watch that is to be removed
// is invalid from then on.
func (t *Trees) Next(session any) (job TreeJob, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != session {
		t.session = session
		t.severLocked()
	}
	for path, e := range t.entries {
		switch wanted := len(e.watches) > 0; {
		case !wanted:
			delete(t.entries, path)
			if e.valid {
				return TreeJob{Path: path, session: session, link: t.link}, true
			}
		case !e.valid:
			return TreeJob{Path: path, Set: true, session: session, link: t.link}, true
		}
	}
	return TreeJob{}, false
}

// Done records that a watch is set, unless the connection that it was set on is lost.
func (t *Trees) Done(job TreeJob) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[job.Path]
	if !job.Set || e == nil || job.link != t.link {
		return
	}
	e.valid, e.refusal = true, nil
	for _, w := range e.watches {
		w.begins()
	}
}

// Delay records that a server refused to set the watch for now, because of err. What a server said in a
// former session is ignored.
func (t *Trees) Delay(job TreeJob, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[job.Path]; e != nil && job.session == t.session {
		e.refusal = err
	}
}

// Refusal returns why a server has not set the watch of w yet, or nil.
func (t *Trees) Refusal(w *Tree) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[w.path]; e != nil {
		return e.refusal
	}
	return nil
}

// Refuse ends the Trees on the job's path, because of err. What a server said in a former session is
// ignored; it may have closed its connection behind the reply.
func (t *Trees) Refuse(job TreeJob, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[job.Path]; e != nil && job.session == t.session {
		for _, w := range e.watches {
			w.ends(err)
		}
		e.watches = nil
	}
}
