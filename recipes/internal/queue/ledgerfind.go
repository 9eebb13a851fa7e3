package queue

// find returns where the node stands. ok says whether the ledger contains it, and can
// vouch for what it shows ahead of it.
func (l *ledger) find(q *Queue, node Node) (p position, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.findLocked(q, node)
}

// findNew is find for a node that nobody watches yet: who has nobody ahead must have
// had nobody from the start, since only then is it known to have stood at that moment.
func (l *ledger) findNew(q *Queue, node Node) (p position, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok = l.findLocked(q, node)
	if ok && p.ahead == "" {
		ok = l.nodes[l.indexLocked(node)].first
	}
	return p, ok
}

// free reports whether nobody stands, as far as the session knows, and nobody of it is about to come.
func (l *ledger) free() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.standsLocked() && l.base == nil && l.cold == 0 && l.added < addedAtMost && len(l.nodes) == 0 && l.others == 0
}

// alone reports whether the new node certainly was the only child when it came.
func (l *ledger) alone(node Node) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.indexLocked(node)
	return own >= 0 && l.nodes[own].only
}

func (l *ledger) findLocked(q *Queue, node Node) (p position, ok bool) {
	own := l.indexLocked(node)
	if own < 0 || node.Sequence == lastSequence || l.nodes[own].doubt {
		return position{}, false // of the last number, more than that decides about its place
	}
	p = q.position(l.nodes, own)
	p.nextCovered = l.covered[p.next] > 0
	return p, true
}
