package history

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A Succession is how losses and the grants after them followed one another.
type Succession struct {
	Losses    int           // of leases whose session ended by itself, in a process that ran
	Succeeded int           // those that met a holder, and after which somebody else got the lock
	MinGap    time.Duration // the least time from an observed loss to the successor's grant; 0 if none
	Nearest   string        // the lease of that loss, and why it was lost
	Revoked   int           // losses of sessions that somebody else had closed
	Stopped   int           // losses that a stopped process could not notice in time
	Faults    []string      // "loss before succession" broken
}

// Succession holds each loss against the first grant after it that it should have come
// before. A lease that was seen to stand after that grant is a fault. A gap may be
// negative without one: who noted the loss may have waited for a processor.
func (h *History) Succession() Succession {
	s := Succession{MinGap: math.MaxInt64}
	byLock := make(map[string][]*Tenure)
	for _, t := range h.Tenures { // in the order of their grants
		for _, st := range t.Grant.Stakes {
			byLock[st.Lock] = append(byLock[st.Lock], t)
		}
	}
	for _, t := range h.Tenures {
		if t.End == Lost {
			s.add(t, byLock)
		}
	}
	if s.Succeeded == 0 {
		s.MinGap = 0
	}
	return s
}

func (s *Succession) add(t *Tenure, byLock map[string][]*Tenure) {
	switch {
	case t.Revoked > 0:
		s.Revoked++
		return
	case t.Stopped:
		s.Stopped++
	default:
		s.Losses++
	}
	next := successor(t, byLock)
	if next == nil {
		return
	}
	if t.Alive > next.Grant.Return {
		s.Faults = append(s.Faults, fmt.Sprintf("loss before succession: %s stood at %d, %v after %s was granted",
			t.Grant.Lease, t.Alive, time.Duration(t.Alive-next.Grant.Return), next.Grant.Lease))
	}
	if !t.Stopped && t.Call == 0 { // who was releasing it had done with it
		s.Succeeded++
		if gap := time.Duration(next.Grant.Return - t.Return); gap < s.MinGap {
			s.MinGap, s.Nearest = gap, fmt.Sprintf("%s, at %d, before %s: %s", t.Grant.Lease, t.Return, next.Grant.Lease, t.Note)
		}
	}
}

// successor returns the first tenure that was granted after t and excludes it.
func successor(t *Tenure, byLock map[string][]*Tenure) *Tenure {
	var first *Tenure
	for _, st := range t.Grant.Stakes {
		all := byLock[st.Lock]
		i := slices.Index(all, t)
		for _, next := range all[i+1:] {
			if next.Grant.Owner == t.Grant.Owner || next.Grant.Shared && t.Grant.Shared {
				continue
			}
			if first == nil || next.Grant.Return < first.Grant.Return {
				first = next
			}
			break
		}
	}
	return first
}
