package fault

import (
	"fmt"
	"slices"
	"sync"
)

// Rules is a set of rules, in the order in which they were added. The zero value is
// an empty set, ready to use; it must not be copied after its first use.
type Rules struct {
	mu      sync.Mutex // also guards the mutable state of every handle and injection of the set
	handles []*Handle  // the rules that can still hit or hold something, in the order of Add
}

// Add puts rule at the end of the set, in force at once, and returns the handle on
// it. It panics if the rule isn't valid: see [Rule.Validate].
func (r *Rules) Add(rule Rule) *Handle {
	if err := rule.Validate(); err != nil {
		panic(fmt.Sprintf("fault: Rules.Add(%v): %v", rule, err))
	}
	left := max(rule.Times, 1)
	if rule.Times == Forever {
		left = Forever
	}
	h := &Handle{
		rules:    r,
		rule:     rule,
		skip:     rule.Skip,
		left:     left,
		hit:      make(chan struct{}),
		released: make(chan struct{}),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handles = append(r.handles, h)
	return h
}

// Clear releases every rule of the set, as [Handle.Release] does: no rule is in force
// and nothing is held once it returns.
func (r *Rules) Clear() {
	r.mu.Lock()
	handles := slices.Clone(r.handles)
	r.mu.Unlock()
	for _, h := range handles {
		h.Release()
	}
}

// Match returns the claim of the first rule that names f on f, and nil if no rule
// does. It is to be called once for each frame, in the order of arrival on a
// connection; the claim must end in [Injection.Commit] or [Injection.Cancel].
func (r *Rules) Match(f Frame) *Injection {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.handles {
		if h.left == 0 || !h.rule.names(f) {
			continue
		}
		if h.skip > 0 {
			h.skip--
			continue
		}
		s := h.claimLocked()
		if h.rule.Action != Pass {
			return s
		}
		s.commitLocked()
	}
	return nil
}

// tidyLocked forgets the rules that no longer matter, so that a long test's Match
// stays cheap. It needs mu.
func (r *Rules) tidyLocked() {
	r.handles = slices.DeleteFunc(r.handles, (*Handle).spentLocked)
}
