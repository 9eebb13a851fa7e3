package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Forever is the end of a hold whose end no record has.
const Forever = math.MaxInt64 / 2

// A LeaseRecord is one lease's life, put together from its records.
type LeaseRecord struct {
	Grant Record
	End   Kind // Released, Lost, or empty: its process ended before it could tell
	Alive int64

	// Released: the call and the return of the release. Lost: Return is when the loss was
	// observed, and Call when the release was called that told of it, or 0.
	Call, Return int64
	Note         string

	Revoked int64 // from this moment on another client may have closed its session; 0: never
	Stopped bool  // its process was stopped while it was granted, or between its last check and its end
}

// span returns the time within which the tenure ended.
func (t *LeaseRecord) span() (from, to int64) {
	switch t.End {
	case Released:
		from, to = t.Call, t.Return
	case Lost:
		from, to = t.Alive, t.Return
	default:
		from, to = t.Alive, Forever
	}
	if t.Revoked > 0 {
		from = min(from, t.Revoked)
	}
	return from, to
}

// A History is what a number of clients have done, and what was done to them.
type History struct {
	Leases []*LeaseRecord // in the order of their grants
	Counts []Record
	Writes []Record       // and reads
	Fails  map[string]int // how many attempts got no lease, by model

	byLease map[string]*LeaseRecord
}

// Assemble puts records together, those of each client in the order in which they were
// emitted.
func Assemble(records []Record) (*History, error) {
	h := &History{Fails: make(map[string]int), byLease: make(map[string]*LeaseRecord)}
	for _, r := range records {
		if err := h.add(r); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(h.Leases, func(a, b *LeaseRecord) int { return cmp.Compare(a.Grant.Return, b.Grant.Return) })
	return h, nil
}

func (h *History) add(r Record) error {
	switch r.Kind {
	case Granted:
		t := &LeaseRecord{Grant: r, Alive: cmp.Or(r.Alive, r.Return)}
		h.Leases, h.byLease[r.Lease] = append(h.Leases, t), t
		return nil
	case Counted:
		h.Counts = append(h.Counts, r)
		return nil
	case Failed:
		h.Fails[r.Model]++
		return nil
	}
	t := h.byLease[r.Lease]
	if t == nil {
		return fmt.Errorf("history: %s of lease %q, which was never granted", r.Kind, r.Lease)
	}
	switch r.Kind {
	case Standing:
		t.Alive = max(t.Alive, r.Alive)
	case Released, Lost:
		if t.End != "" {
			return fmt.Errorf("history: lease %q ends twice", r.Lease)
		}
		t.End, t.Alive, t.Call, t.Return, t.Note = r.Kind, max(t.Alive, r.Alive), r.Call, r.Return, r.Note
	case Written, Seen:
		h.Writes = append(h.Writes, r)
	default:
		return fmt.Errorf("history: record of kind %q", r.Kind)
	}
	return nil
}

// Revoke records that another client began to close the client's session at a moment. Its holds
// may have ended from then on, and the client could not know it until it observed that. The check
// leaves out its re-entries and counts in between.
func (h *History) Revoke(client string, session, at int64) {
	known := at // when the client has observed it, whatever it had
	for _, t := range h.Leases {
		mine := t.Grant.Client == client && (t.Grant.Session == session || t.Grant.Session == 0)
		_, to := t.span()
		if !mine || at > to {
			continue
		}
		known = max(known, to)
		if t.Revoked == 0 || at < t.Revoked {
			t.Revoked = at
		}
	}
	h.Counts = slices.DeleteFunc(h.Counts, func(r Record) bool {
		return r.Client == client && r.Return >= at && r.Call <= known
	})
}

// stillborn reports whether the lease was granted by re-entry into a hold whose session another
// client had closed.
func (t *LeaseRecord) stillborn() bool { return t.Revoked > 0 && t.Grant.Call >= t.Revoked }

// Stop records that the client's process was stopped for a time. A grant across that time, by an
// event that had waited for the process, may have been lost by then.
func (h *History) Stop(client string, from, to int64) {
	for _, t := range h.Leases {
		begin, end := t.span()
		ended := begin <= to && from <= end
		granted := t.Grant.Call <= to && from <= t.Grant.Return
		if t.Grant.Client == client && (ended || granted) {
			t.Stopped = true
		}
	}
}
