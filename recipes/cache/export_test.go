package cache

// Known returns how many values are kept.
func Known[T any](v *Values[T]) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.known)
}

// LeftOut returns how many znodes the bounds leave out, without those below them.
func LeftOut(s *Snapshot) int { return s.leftOut }
