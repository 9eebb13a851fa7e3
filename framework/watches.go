package framework

import "sync"

// A watchKey identifies the watch that all Watches of one kind on one path share.
type watchKey struct {
	kind WatchKind
	path string
}

// watches are a session's Watches. The server notifies once per watch that it keeps, and then
// forgets the watch. It forgets all watches when the connection ends.
type watches struct {
	spawn func(fn func()) // runs a function of AfterFire on a goroutine of its own

	mu      sync.Mutex // guards following; never held across a request or a callback
	entries map[watchKey]*watchEntry
}

// A watchEntry is one watch at the server, valid or being set. It leaves the map when that watch
// has fired or its connection is lost. Until then every new Watch uses it, because a client can't
// withdraw a watch.
type watchEntry struct {
	key         watchKey
	subscribers map[*Watch]struct{}
	armed       bool       // the server has the watch
	severed     bool       // the server had it on a lost connection; fireAll follows
	mark        watchMark  // the state that the arming read found
	found       *nodeState // the result of a read of WatchEach, never changed; may be nil

	// reading is WatchEach's read that is to set the watch. It is nil unless that read is under way
	// and its caller keeps the path armed.
	reading *pending[*nodeState]
}

func newWatches(spawn func(fn func())) *watches {
	return &watches{spawn: spawn, entries: make(map[watchKey]*watchEntry)}
}

// join adds a Watch. armed reports whether the server has the watch already.
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

// known gives w the result of an earlier read if the watch has not fired since. Then the session
// knows of no change, because a server notifies of a change before it replies from the new state.
func (r *watches) known(w *Watch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[w.entry.key] != w.entry || w.entry.found == nil {
		return false
	}
	w.found = w.entry.found
	return true
}

// share returns a read that is under way and can be shared, or begins one and keeps it for others.
// own reports whether it began the read.
func (r *watches) share(entry *watchEntry, begin func() *pending[*nodeState]) (read *pending[*nodeState], own bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry.reading != nil {
		return entry.reading, false
	}
	entry.reading = begin()
	return entry.reading, true
}

// unshare removes the entry's read, which share kept.
func (r *watches) unshare(entry *watchEntry, read *pending[*nodeState]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry.reading == read {
		entry.reading = nil
	}
}

// setArmed records that the server has the watch, unless that has fired since. It keeps the read's
// result if other Watches may use it.
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

// severAll records that the connection on which the server kept the watches is lost.
func (r *watches) severAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.entries {
		entry.severed = true
	}
}

// valid reports whether w has not fired and its connection is not lost.
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

// fire notifies the Watches that the event concerns. It runs on a goroutine of the wire client, in
// the connection's order, and does not block.
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

// concerns returns the kinds of watches that a server's event ends.
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

// fireAt notifies the Watches on path, of all kinds, if their watch at the server is gone for
// another reason than an event.
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

// fireAll notifies all Watches when the connection on which the server kept them is lost.
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
