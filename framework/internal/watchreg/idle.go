package watchreg

// A server keeps a watch without callers until it fires or the connection ends. Most are needed again soon, or
// fire soon, so a Registry leaves maxIdle of them. Beyond that it has batches removed, when nothing else is sent. That
// may never be, so beyond twice as many no batch waits for the one before: many removals take turns with other requests.
//
// Who comes back to a path during its removal must not lose an event: a read that sets the watch, and that
// the server gets before the removal, would set nothing that lasts. So the removal is taken back. If it could
// be, the server still has the watch. Else its write has begun, and the read that the caller sends next is
// behind it: the server serves a connection's requests in their order, so the read sets the watch again. An
// event of the removed watch that arrives meanwhile fires the new Subscription with Unseen, as every event does
// that comes before the reply to its read.
const (
	maxIdle = 1000 // paths
	batch   = 100  // at once: about as much as a write has
)

// A Removal is a request that removes watches. Removals are compared by ==.
type Removal interface {
	// Withdraw takes the request back if its write has not begun, and reports whether it did.
	Withdraw() bool
}

// idle has the paths that have entries, and no Subscription. A server has one watch for the kinds Data and Exists,
// so watches are removed by path, and not by key.
type idle struct {
	paths    map[string]struct{} // whose removal is not under way
	removing map[string]Removal  // those whose removal is
	refused  bool                // the server does not know the request
}

func newIdle() idle {
	return idle{paths: make(map[string]struct{}), removing: make(map[string]Removal)}
}

// needLocked is called before a Subscription joins an entry of the path. It needs mu, as the following methods do.
func (r *Registry) needLocked(path string) {
	delete(r.paths, path)
	removal, under := r.removing[path]
	if !under {
		return
	}
	delete(r.removing, path)
	if !removal.Withdraw() {
		r.forgetLocked(path)
	}
}

// forgetLocked forgets the entries of a path without Subscriptions.
func (r *Registry) forgetLocked(path string) {
	for _, kind := range kinds() {
		delete(r.entries, Key{kind, path})
	}
}

// leaveLocked ends the Subscription's use of its entry.
func (r *Registry) leaveLocked(sub *Subscription) {
	e := sub.entry
	delete(e.subscribers, sub)
	if r.entries[e.key] != e {
		return
	}
	if len(e.subscribers) == 0 && !e.armed && !e.left {
		delete(r.entries, e.key)
	}
	r.settleLocked(e.key.Path)
}

// settleLocked records whether the path is idle. It has a batch of idle paths removed if there are too many.
func (r *Registry) settleLocked(path string) {
	if _, under := r.removing[path]; under {
		return
	}
	if r.isIdleLocked(path) {
		r.paths[path] = struct{}{}
	} else {
		delete(r.paths, path)
	}
	r.reduceLocked()
}

func (r *Registry) isIdleLocked(path string) (idle bool) {
	for _, kind := range kinds() {
		if e := r.entries[Key{kind, path}]; e != nil {
			if len(e.subscribers) > 0 || e.severed {
				return false
			}
			idle = true
		}
	}
	return idle
}

// reduceLocked has a batch removed if there are too many idle paths, and no earlier batch is under way. If there
// are far too many, as many are under way as may be idle: callers may leave that many during a round trip.
func (r *Registry) reduceLocked() {
	room := 0
	switch {
	case r.refused:
	case len(r.paths) > 2*r.most:
		room = max(batch, r.most) - len(r.removing)
	case len(r.paths) > r.most && len(r.removing) == 0:
		room = batch
	}
	for path := range r.paths {
		if room--; room < 0 {
			return
		}
		removal := r.remove(path)
		if removal == nil {
			return
		}
		delete(r.paths, path)
		r.removing[path] = removal
	}
}

// Removed records that a removal of the path has ended. known says whether the server knows the request. Whatever
// the outcome, the next Subscription sets the watch again.
func (r *Registry) Removed(path string, removal Removal, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = r.refused || !known
	if r.removing[path] == removal {
		delete(r.removing, path)
		r.forgetLocked(path)
		r.reduceLocked()
	}
}
