package execute

import "time"

// An Action is what the plan demands now.
type Action int

// The actions.
const (
	Continue Action = iota + 1
	Warn            // send the stop signal, because the lease deadline is near
	Kill            // send KILL
)

// A Plan decides when the program is warned and killed. It knows no clock and no process: its owner
// asks it again at the time that it returns, and whenever something has happened.
type Plan struct {
	budget Budget
	phase  phase
	killAt time.Time // the latest time for KILL, once the group has to stop
}

type phase int

const (
	working phase = iota
	stopping
	killed
)

// NewPlan returns the plan for a group that works.
func NewPlan(b Budget) *Plan { return &Plan{budget: b} }

// Next returns what to do at now, and when to ask again at the latest. deadline is the lease's, read
// just before. Once the group was warned there is no way back, even if the deadline moves on.
func (p *Plan) Next(now, deadline time.Time) (Action, time.Time) {
	warning, kill := p.budget.Warning(deadline), p.budget.Kill(deadline)
	switch {
	case p.phase == killed:
		return Continue, time.Time{}
	case p.phase == stopping:
		kill = earlier(kill, p.killAt)
		if now.Before(kill) {
			return Continue, kill
		}
	case now.Before(warning):
		return Continue, warning
	case now.Before(kill):
		p.phase, p.killAt = stopping, kill
		return Warn, kill
	}
	p.phase = killed
	return Kill, time.Time{}
}

// Stop notes that the group was sent the stop signal for another reason than the deadline, and gets
// KILL after the grace. A group that was told to stop before keeps its time.
func (p *Plan) Stop(now time.Time) {
	if p.phase == working {
		p.phase, p.killAt = stopping, now.Add(p.budget.Grace)
	}
}

// Killed notes that the group was sent KILL.
func (p *Plan) Killed() { p.phase = killed }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
