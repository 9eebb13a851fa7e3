package fault

// A Handle is a test's hold on a rule that it has added to [Rules].
type Handle struct {
	rules    *Rules        // immutable; its mu guards the counts
	rule     Rule          // immutable
	hit      chan struct{} // closed by the first landing, under rules.mu
	released chan struct{} // closed by Release, under rules.mu

	skip    int  // frames still to pass
	left    int  // claims still to be had; Forever has no end
	pending int  // claims that have neither landed nor been abandoned
	hits    int  // claims that have landed
	retired bool // Remove or Release has been called
	opened  bool // Release has been called
}

// Hit returns a channel that is closed when the rule has hit for the first time. At
// what moment a rule hits is said where its [Action] is defined.
func (h *Handle) Hit() <-chan struct{} { return h.hit }

// Hits returns how often the rule has hit.
func (h *Handle) Hits() int {
	h.rules.mu.Lock()
	defer h.rules.mu.Unlock()
	return h.hits
}

// Remove takes the rule out of force: it claims no further frame. The rule still completes what it
// has already claimed. In particular, frames that it holds stay held until Release. Further calls
// do nothing.
func (h *Handle) Remove() {
	h.rules.mu.Lock()
	defer h.rules.mu.Unlock()
	h.retireLocked()
	h.rules.tidyLocked()
}

// Release takes the rule out of force and lets everything go that it holds or delays,
// in order. It doesn't wait for the frames to be delivered. Further calls do
// nothing.
func (h *Handle) Release() {
	h.rules.mu.Lock()
	defer h.rules.mu.Unlock()
	h.retireLocked()
	if !h.opened {
		h.opened = true
		close(h.released)
	}
	h.rules.tidyLocked()
}

func (h *Handle) retireLocked() {
	h.retired = true
	h.left = 0
}

// claimLocked takes one of the claims that are left.
func (h *Handle) claimLocked() *Injection {
	if h.left != Forever {
		h.left--
	}
	h.pending++
	return &Injection{handle: h}
}

// spentLocked reports whether the rule can neither claim a frame, get a claim back
// nor hold anything.
func (h *Handle) spentLocked() bool {
	if h.left != 0 {
		return false
	}
	if h.rule.Action.holds() || h.rule.Action.delays() {
		return h.opened
	}
	return h.retired || h.pending == 0
}
