package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Write calls write and records what became of it. write returns the version that the
// register has got by it, as far as it was accepted.
func (h *Hold) Write(ctx context.Context, register string, write func(context.Context) (version int64, outcome Outcome)) Outcome {
	call := h.recorder.clock()
	version, outcome := write(ctx)
	h.recorder.emit(Record{
		Kind: Written, Client: h.record.Client, Lease: h.record.Lease, Register: register, Fence: h.Fence(),
		Call: call, Return: h.recorder.clock(), Version: version, Outcome: outcome,
	})
	return outcome
}

// Read records that the register was found to have a version, and by which fence.
func (h *Hold) Read(register string, version, fence int64) {
	h.recorder.emit(Record{
		Kind: Seen, Client: h.record.Client, Lease: h.record.Lease, Register: register,
		Version: version, Fence: fence, Call: h.recorder.clock(),
	})
}

// Registers is what became of the writes to registers under locks.
type Registers struct {
	Accepted int
	Refused  int            // of all kinds
	Late     map[string]int // by register: refused, of a holder that was stopped while it held
	Faults   []string       // a late write that was accepted, or a holder's that was refused
}

// Registers checks that no register ever went back to an earlier holder, by the versions of its
// writes and reads. It also checks that no holder was refused whose lease was seen to be held
// afterwards.
func (h *History) Registers() Registers {
	r := Registers{Late: make(map[string]int)}
	writes := slices.Clone(h.Writes)
	slices.SortStableFunc(writes, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Register, b.Register), cmp.Compare(a.Version, b.Version))
	})
	var before Record
	for _, w := range writes {
		t := h.byLease[w.Lease]
		switch {
		case w.Outcome == Refused:
			r.refuse(w, t)
			continue
		case w.Outcome == Unknown:
			continue
		case w.Kind == Written:
			r.Accepted++
		}
		if before.Register == w.Register && w.Fence < before.Fence {
			r.Faults = append(r.Faults, fmt.Sprintf("register %s: version %d of fence %d after version %d of fence %d",
				w.Register, w.Version, w.Fence, before.Version, before.Fence))
		}
		before = w
	}
	return r
}

func (r *Registers) refuse(w Record, t *LeaseRecord) {
	r.Refused++
	if t.Stopped {
		r.Late[w.Register]++
	}
	if t.Alive > w.Return && t.Revoked == 0 {
		r.Faults = append(r.Faults, fmt.Sprintf("register %s: a write of %s was refused at %d, and its lease stood at %d",
			w.Register, w.Lease, w.Return, t.Alive))
	}
}
