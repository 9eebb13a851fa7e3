package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A LossReport says how losses and the grants after them followed one another.
type LossReport struct {
	Losses    int           // of leases whose session ended by itself, in a process that ran
	Succeeded int           // those of holders, with a later grant to another client
	MinGap    time.Duration // the least time from an observed loss to the successor's grant; 0 if none
	Gaps      []Gap         // those times, the least first
	Released  []Gap         // the same for losses that the lease's own release told of: it may have arrived, late
	Revoked   int           // losses of sessions that another client had closed
	Stopped   int           // losses that a stopped process could not notice in time
	Faults    []string      // "loss before succession" broken
}

// A Gap is the time between a loss and the grant after it.
type Gap struct {
	Lost, Next *LeaseRecord
}

// Length is how long the gap is, less than 0 if the loss was notified after the grant.
func (g Gap) Length() time.Duration { return time.Duration(g.Next.Grant.Return - g.Lost.Return) }

// LossReport compares each loss with the first grant after it that it has to precede. A negative
// gap is a fault: the holder was notified of its loss after the grant. If the lease's own release
// reported the loss, the call of the release counts instead.
func (h *History) LossReport() LossReport {
	var s LossReport
	byLock := make(map[string][]*LeaseRecord)
	for _, t := range h.Leases { // in the order of their grants
		for _, st := range t.Grant.Locks {
			byLock[st.Lock] = append(byLock[st.Lock], t)
		}
	}
	for _, t := range h.Leases {
		if t.End == Lost {
			s.add(t, byLock)
		}
	}
	for _, gaps := range [][]Gap{s.Gaps, s.Released} {
		slices.SortStableFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.Length(), b.Length()) })
	}
	if s.Succeeded = len(s.Gaps); s.Succeeded > 0 {
		s.MinGap = s.Gaps[0].Length()
	}
	return s
}

func (s *LossReport) add(t *LeaseRecord, byLock map[string][]*LeaseRecord) {
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
	if t.Stopped {
		return
	}
	ended := t.Return
	if t.Call > 0 { // the holder was releasing it, and used it no more
		ended = t.Call
		s.Released = append(s.Released, Gap{Lost: t, Next: next})
	} else {
		s.Gaps = append(s.Gaps, Gap{Lost: t, Next: next})
	}
	if ended > next.Grant.Return && t.Alive <= next.Grant.Return {
		s.Faults = append(s.Faults, fmt.Sprintf("loss before succession: %s was notified of its loss at %d, %v after %s was granted",
			t.Grant.Lease, ended, time.Duration(ended-next.Grant.Return), next.Grant.Lease))
	}
}

// successor returns the first tenure that was granted after t and excludes it.
func successor(t *LeaseRecord, byLock map[string][]*LeaseRecord) *LeaseRecord {
	var first *LeaseRecord
	for _, st := range t.Grant.Locks {
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
