package tap

// Leaving returns a channel that is closed when a create of path, which nobody
// else is creating, goes to the server: what is handed to the wire client from
// then on is sent after it. forget ends the interest.
func (t *Tap) Leaving(path string) (left <-chan struct{}, forget func()) {
	ch := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaving[path] = ch
	return ch, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.leaving[path] == ch {
			delete(t.leaving, path)
		}
	}
}

// leavesLocked takes note that a create of path is being sent. It needs mu.
func (t *Tap) leavesLocked(path []byte) {
	if ch, ok := t.leaving[string(path)]; ok {
		delete(t.leaving, string(path))
		close(ch)
	}
}
