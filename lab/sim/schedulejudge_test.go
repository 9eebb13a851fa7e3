package sim_test

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/testing/zkserver"
)

// The guarantees of schedules, in addition to those of locks.
const (
	oneRun     guarantee = "one run at a time" // exclusion of runs
	endsOnce   guarantee = "a slot ends once"
	trueMarks  guarantee = "true marks"
	noneMissed guarantee = "no slot is missed"
)

// observe is the validator of "true marks" and of "a slot ends once" for what the leader has.
func (k *scheduling) observe(x zkserver.Transaction) {
	for _, c := range x.Changes {
		if c.Path != scheduleRoot || c.Kind != zkserver.DataSet {
			continue
		}
		runs, err := schedule.ParseRuns(c.Data)
		if err != nil {
			k.env.violatedLocked(trueMarks, "the marks can't be read: %v", err)
		}
		for _, r := range runs {
			k.marked(r)
		}
		k.marks = runs
	}
}

// marked compares a run in the marks with what has happened. It needs env.mu.
func (k *scheduling) marked(r schedule.Run) {
	s := k.of(r.Slot)
	if r.State != schedule.Done && r.State != schedule.Failed {
		if had := s.recorded[r.Fence]; had != "" {
			k.env.violatedLocked(trueMarks, "the run %d of %v is %s after it was %s", r.Fence, r.Slot, r.State, had)
		}
		return
	}
	s.recorded[r.Fence] = string(r.State)
	if len(s.recorded) > 1 {
		k.env.violatedLocked(endsOnce, "%v has ended twice: %v", r.Slot, s.recorded)
	}
	if s.returned == 0 {
		k.env.violatedLocked(trueMarks, "%v is %s, and no function has returned", r.Slot, r.State)
	}
}

// mark returns what the leader has of the run with the fence. It needs env.mu.
func (k *scheduling) mark(fence int64) schedule.State {
	for _, r := range k.marks {
		if r.Fence == fence {
			return r.State
		}
	}
	return ""
}

// begins compares the begin of a function with the marks and with what ran before.
func (c *scheduleCall) begins(l *lease.Lease) {
	c.env.mu.Lock()
	defer c.env.mu.Unlock()
	s := c.of(c.slot)
	if state := c.mark(l.Fence()); state == "" {
		c.env.violatedLocked(trueMarks, "%s begins %v, and no mark says so", c.c.name, c.slot)
	}
	if len(s.recorded) > 0 {
		c.env.violatedLocked(endsOnce, "%s begins %v, which has ended: %v", c.c.name, c.slot, s.recorded)
	}
	if s.begun++; s.begun > 1 {
		c.env.counts["runs repeated"]++
		if !c.rerun {
			c.env.violatedLocked(endsOnce, "%s begins %v again, which may run once", c.c.name, c.slot)
		}
	}
	if c.ran {
		c.env.violatedLocked(endsOnce, "one call of %s runs %v again", c.c.name, c.slot)
	}
	c.ran = true
}

// comesToItsEnd notes that the function does.
func (c *scheduleCall) comesToItsEnd() {
	c.env.mu.Lock()
	defer c.env.mu.Unlock()
	c.of(c.slot).returned++
}

// returned holds the result of a call against what has happened.
func (c *scheduleCall) returned(got schedule.Result, err error) {
	env := c.env
	env.report(c.c.name, "Run has returned "+got.Outcome.String()+" of "+c.slot.String(), err)
	if env.ctx.Err() != nil {
		return
	}
	env.count("slots "+got.Outcome.String(), 1)
	waited := errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil && env.now()-c.began >= c.wait && !c.ran
	if waited {
		env.count("Run: waited", 1)
	} else {
		env.judge(c.ctx.Err() != nil, c.c.name, "Run", err)
	}
	c.checkTime(err)
	env.mu.Lock()
	defer env.mu.Unlock()
	s := c.of(c.slot)
	says := func(g guarantee, what string) {
		env.violatedLocked(g, "%s: Run of %v says %v (%v), and %s: %+v", c.c.name, c.slot, got.Outcome, err, what, *s)
	}
	unmarked := errors.Is(err, schedule.ErrUnmarked)
	switch got.Outcome {
	case schedule.Ran:
		switch mark := c.mark(got.Run.Fence); {
		case !c.ran:
			says(trueMarks, "its function has not run")
		case !unmarked && mark != got.Run.State:
			says(trueMarks, "the mark is "+string(mark))
		case unmarked && c.ctx.Err() == nil && len(env.killed) == 0 && !env.harmedLocked(nil, c.began-env.settling()):
			says(trueMarks, "nothing kept its end from being recorded")
		}
	case schedule.DoneElsewhere:
		if len(s.recorded) == 0 {
			says(trueMarks, "no end is recorded")
		}
	case schedule.RunningElsewhere:
		if s.begun == 0 && got.Run.Call == "" {
			says(trueMarks, "no run has begun")
		}
	case schedule.LostInTheMiddle:
		if len(s.recorded) > 0 && !c.rerun {
			says(trueMarks, "an end is recorded")
		}
	case schedule.Missed:
		c.checkMissed(err, waited, says)
	}
	if got.Outcome != schedule.Ran && got.Outcome != schedule.LostInTheMiddle && c.ran {
		says(trueMarks, "its function has run")
	}
}

// checkTime is the validator of "bounded calls" for Run.
func (c *scheduleCall) checkTime(err error) {
	ends := c.began + min(c.wait, c.ends)
	switch {
	case c.ran && c.ctx.Err() == nil:
		return // it records the end for as long as the lease lasts
	case c.ran:
		ends = max(c.ended, c.began+c.ends)
	}
	if late := c.env.now() - ends; late > markLimit+releaseWait+promptly {
		c.env.violated(boundedCalls, "Run of %s returned %v late: %v", c.c.name, late, err)
	}
}

// markLimit is how long Run records an end after the end of its context.
const markLimit = time.Second

// checkMissed is the validator of "no slot is missed". A call may say so if a later slot has begun, and if it could do
// nothing else for as long as it waits. It needs env.mu.
func (c *scheduleCall) checkMissed(err error, waited bool, says func(guarantee, string)) {
	if errors.Is(err, schedule.ErrPassed) {
		for _, r := range c.marks {
			if r.Slot.After(c.slot) {
				return
			}
		}
		says(noneMissed, "no later slot has begun")
		return
	}
	t := c.env.target(scheduleTarget)
	since := max(c.began, t.freed, c.c.connected)
	for _, s := range t.stakes {
		if !c.env.over(s) {
			return
		}
	}
	free := c.env.now() - since
	if waited && c.c.state == framework.Connected && free > c.env.prompt() && !c.env.harmedLocked(nil, since-c.env.settling()) {
		says(noneMissed, "nothing was in its way for "+free.String())
	}
}

// scheduleBugs are, for each guarantee of schedules, what its validator has to find.
func scheduleBugs() []deliberate {
	elsewhere := astray(scheduleRoot)
	return []deliberate{
		{oneRun, "one of the hosts has its marks at another path", "has it with", elsewhere},
		{endsOnce, "one of the hosts has its marks at another path", "begins", elsewhere},
		{trueMarks, "one of the hosts has its marks at another path", "no mark says so", elsewhere},
		{noneMissed, "a client holds the job's lock for good", "all is well", func(b *bug) {
			b.plan, b.harm = calm, func(env *environment) {
				made(made(lock.NewUnfairMutex(env.operator, scheduleTarget)).Lock(env.ctx)) // and keeps it
			}
		}},
	}
}
