package schedule

import (
	"encoding/json"
	"slices"
	"time"
)

// A State says what became of a run.
type State string

// The states of a run.
const (
	Running State = "running" // it has begun; if its host has died since, no call has found that yet
	Done    State = "done"    // the function returned nil
	Failed  State = "failed"  // the function returned an error
	Lost    State = "lost"    // it ended in the middle
)

// A Run is what is recorded of a run. Times but Slot are by the clock of the run's host.
type Run struct {
	Slot    time.Time `json:"slot"`
	State   State     `json:"state"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to,omitzero"` // zero while it runs, and if its host did not see the end
	Owner   string    `json:"owner,omitempty"`
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Process string    `json:"process,omitempty"` // as in lease.Metadata
	Fence   int64     `json:"fence"`             // of its lease
	Call    string    `json:"call"`              // random id of the call of Run
}

// marksVersion is the version of the format.
const marksVersion = 1

// marks are the last runs, in the order in which they began. Their slots never decrease.
type marks struct {
	Version int   `json:"docent"`
	Runs    []Run `json:"runs"`
}

// ParseRuns returns the runs that a schedule's znode has in its data, in the order in which they began, for
// programs that show them. No data are no runs. The error is [ErrCorrupt].
func ParseRuns(data []byte) ([]Run, error) {
	m, err := decode(data)
	return m.Runs, err
}

// decode returns the marks of the znode's data. No data are no marks.
func decode(data []byte) (marks, error) {
	if len(data) == 0 {
		return marks{}, nil
	}
	var m marks
	if err := json.Unmarshal(data, &m); err != nil || m.Version != marksVersion {
		return marks{}, ErrCorrupt
	}
	return m, nil
}

func (m marks) encode() []byte {
	m.Version = marksVersion
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // slots have four digits of a year at the most, and all else encodes
	}
	return data
}

// runOf returns the last run of the slot.
func (m marks) runOf(slot time.Time) (Run, bool) {
	for _, r := range slices.Backward(m.Runs) {
		if r.Slot.Equal(slot) {
			return r, true
		}
	}
	return Run{}, false
}

// passed reports whether a later slot has begun.
func (m marks) passed(slot time.Time) bool {
	return len(m.Runs) > 0 && m.Runs[len(m.Runs)-1].Slot.After(slot)
}

// begun returns the marks after the begin of a run, with the last runs up to most of them. Whoever holds
// the lock knows that no earlier run runs on.
func (m marks) begun(r Run, most int) marks {
	runs := append(slices.Clone(m.settled().Runs), r)
	return marks{Runs: runs[max(0, len(runs)-most):]}
}

// settled returns the marks with every run that has begun and not ended as lost.
func (m marks) settled() marks {
	runs := slices.Clone(m.Runs)
	for i := range runs {
		if runs[i].State == Running {
			runs[i].State = Lost
		}
	}
	return marks{Runs: runs}
}

// ended returns the marks after the end of a run, and false if there is nothing to change.
func (m marks) ended(r Run) (marks, bool) {
	i := slices.IndexFunc(m.Runs, func(o Run) bool { return o.Fence == r.Fence && o.State == Running })
	if i < 0 {
		return m, false
	}
	runs := slices.Clone(m.Runs)
	runs[i] = r
	return marks{Runs: runs}, true
}

// has reports whether the run is recorded in its state.
func (m marks) has(r Run) bool {
	return slices.ContainsFunc(m.Runs, func(o Run) bool { return o.Fence == r.Fence && o.State == r.State })
}

// A verdict says what a call has to do.
type verdict int

const (
	begin verdict = iota // as soon as it holds the lock
	await                // until the marks or the lock have changed
	over                 // the outcome is known
	found                // if it holds the lock: the run was lost
)

// judge returns what a call has to do for the slot, and the outcome if the call can do nothing more. holder is the
// fence of the lock's holder, 0 if the lock is free. call is the call's id: a run of its own that has begun in the
// marks never reached the function. Another run that has no end is lost only when a call that holds the lock has
// recorded that: what was read may be older than its end.
func (m marks) judge(slot time.Time, holder int64, rerun bool, call string) (verdict, Outcome, Run) {
	run, marked := m.runOf(slot)
	own, passed := run.Call == call, m.passed(slot)
	switch {
	case !marked && passed:
		return over, Missed, run
	case !marked:
		return begin, Missed, run
	case run.State == Done || run.State == Failed:
		return over, DoneElsewhere, run
	case run.State == Running && run.Fence == holder:
		v, outcome := judgeRunning(own, rerun)
		return v, outcome, run
	case own && !passed, run.State == Lost && rerun && !passed:
		return begin, LostInTheMiddle, run
	case run.State == Lost:
		return over, LostInTheMiddle, run
	case rerun && !passed:
		return begin, Missed, Run{}
	}
	return found, Missed, Run{}
}

// judgeRunning is judge for a run whose call holds the lock.
func judgeRunning(own, rerun bool) (verdict, Outcome) {
	switch {
	case own:
		return await, LostInTheMiddle
	case rerun:
		return await, RunningElsewhere
	}
	return over, RunningElsewhere
}
