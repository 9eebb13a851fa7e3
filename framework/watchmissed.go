package framework

// A watchMark is the part of a znode's state that a watch of one kind watches. It is zero if there
// is no znode.
type watchMark struct{ created, changed int64 }

func (k WatchKind) mark(found *nodeState) watchMark {
	if k == WatchChildren {
		return watchMark{found.stat.Czxid, found.stat.Pzxid}
	}
	return watchMark{found.stat.Czxid, found.stat.Mzxid}
}

// missed reports whether w's read shows a change that the watch at the server did not notify of. A
// server sends an event before it answers from the new state. So it has dropped that event, and the
// watch with it. Then missed ends the entry: w leaves it, and the other Watches fire.
func (r *watches) missed(w *Watch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := w.entry
	if r.entries[entry.key] != entry || entry.severed ||
		entry.key.kind.mark(w.found) == entry.mark {
		return false
	}
	delete(entry.subscribers, w)
	delete(r.entries, entry.key)
	entry.fire(EventUnseen)
	return true
}
