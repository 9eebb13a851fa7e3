package framework

import "sync"

// A watchKey names what all Watches of one kind on one path share.
type watchKey struct {
	kind WatchKind
	path string
}

// watches are a session's Watches. The server tells once per watch that it
// keeps, and then forgets it; it also forgets all when the connection ends.
type watches struct {
	spawn func(fn func()) // runs a function of AfterFire on a goroutine of its own

	mu      sync.Mutex // guards following; never held across a request or a callback
	entries map[watchKey]*watchEntry
}

// A watchEntry is one watch at the server, standing or about to. It leaves the
// map when that has fired or is gone with its connection; until then it serves whoever
// comes, since a watch can't be taken back.
type watchEntry struct {
	key         watchKey
	subscribers map[*Watch]struct{}
	armed       bool       // the server has it
	severed     bool       // it had, on a connection that is gone; it will be fired for that
	mark        watchMark  // what the read saw that armed it
	found       *nodeState // what a read of WatchEach found; nil for none, never changed. See known

	// reading is WatchEach's read that is to set the watch, while it is on its way and
	// whoever sent it keeps its path armed; else nil.
	reading *pending[*nodeState]
}

func newWatches(spawn func(fn func())) *watches {
	return &watches{spawn: spawn, entries: make(map[watchKey]*watchEntry)}
}

// join adds a Watch. armed says whether the server has the watch already.
func (r *watches) join(key watchKey) (w *Watch, armed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.entries[key]
	if entry == nil {
		entry = &watchEntry{key: key, subscribers: make(map[*Watch]struct{})}
		r.entries[key] = entry
	}
	w = &Watch{registry: r, entry: entry, fired: make(chan struct{})}
	entry.subscribers[w] = struct{}{}
	return w, entry.armed
}

// armed returns how many watches the server has.
func (r *watches) armed() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.entries {
		if entry.armed {
			n++
		}
	}
	return n
}

// known gives w what an earlier read of what it watches found, if there was one and
// the watch has not fired since. Then what is watched has not changed as far as
// the session knows: a server tells of a change before it answers from the new state.
func (r *watches) known(w *Watch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[w.entry.key] != w.entry || w.entry.found == nil {
		return false
	}
	w.found = w.entry.found
	return true
}

// share returns the read on its way that will do for others, or makes it the one that
// begin begins. own says which.
func (r *watches) share(entry *watchEntry, begin func() *pending[*nodeState]) (read *pending[*nodeState], own bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry.reading != nil {
		return entry.reading, false
	}
	entry.reading = begin()
	return entry.reading, true
}

// unshare takes back the read that share made the entry's.
func (r *watches) unshare(entry *watchEntry, read *pending[*nodeState]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry.reading == read {
		entry.reading = nil
	}
}

// setArmed notes that the server has the watch, unless that has fired since, and keeps what the
// read found if others are to know it.
func (r *watches) setArmed(b *beginning) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := b.watch.entry
	if r.entries[entry.key] != entry {
		return
	}
	if !b.armed {
		entry.mark = entry.key.kind.mark(b.watch.found)
	}
	entry.armed, entry.reading = true, nil
	if b.shared && entry.found == nil {
		entry.found = b.watch.found
	}
}

// severAll takes note that the connection is gone that the server kept the watches for.
func (r *watches) severAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.entries {
		entry.severed = true
	}
}

// valid reports whether w has neither fired nor is about to because its connection is lost.
func (r *watches) valid(w *Watch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, subscribed := w.entry.subscribers[w]
	return subscribed && !w.entry.severed
}

func (r *watches) leave(w *Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := w.entry
	delete(entry.subscribers, w)
	if len(entry.subscribers) == 0 && !entry.armed && r.entries[entry.key] == entry {
		delete(r.entries, entry.key)
	}
}

// fire tells the Watches that the event concerns. It runs on a goroutine of the
// wire client, in the connection's order, and does not block.
func (r *watches) fire(event EventKind, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range event.concerns() {
		key := watchKey{kind, path}
		if entry := r.entries[key]; entry != nil {
			delete(r.entries, key)
			entry.fire(event)
		}
	}
}

// concerns returns the kinds of watches that a server's event uses up.
func (k EventKind) concerns() []WatchKind {
	switch k {
	case EventCreated:
		return []WatchKind{WatchExists}
	case EventChanged:
		return []WatchKind{WatchData, WatchExists}
	case EventChildrenChanged:
		return []WatchKind{WatchChildren}
	default:
		return []WatchKind{WatchData, WatchExists, WatchChildren}
	}
}

// fireAt tells the Watches on path, of whatever kind, when their watch at the server is
// gone for another reason than an event.
func (r *watches) fireAt(path string, event EventKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range []WatchKind{WatchData, WatchExists, WatchChildren} {
		key := watchKey{kind, path}
		if entry := r.entries[key]; entry != nil {
			delete(r.entries, key)
			entry.fire(event)
		}
	}
}

// fireAll tells all Watches, when the connection that the server kept them for
// is gone.
func (r *watches) fireAll(event EventKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.entries {
		entry.fire(event)
	}
	clear(r.entries)
}

func (e *watchEntry) fire(event EventKind) {
	for w := range e.subscribers {
		w.event = event
		close(w.fired)
		if w.after != nil {
			w.registry.spawn(w.after)
			w.after = nil
		}
	}
	clear(e.subscribers)
}
