package sim_test

// A znode that a release passes on to another owner of the client has one fence, so it may be
// passed on only as long as nobody has asked for that.

// tellFence notes that the holder knows the number of its znode. It needs w.mu.
func (w *world) tellFence(s *stake) {
	if s.told {
		s.target.told[s.node] = s.party
	}
}

// checkPassed is the validator of "monotonic fence" for a lease that was passed on. It needs w.mu.
func (w *world) checkPassed(s *stake) {
	w.counts["passed on"]++
	if earlier := s.target.told[s.node]; earlier != "" && earlier != s.party {
		w.violatedLocked(monotonicFence, "%s was passed on to %s, and %s knows its fence", s.node.path, s.party, earlier)
	}
}
