package execute

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/docent-go/docent/recipes/lease"
)

// A Group is the process group of CMD.
type Group interface {
	Signal(sig syscall.Signal) // to all processes of the group
	Leader() <-chan struct{}   // closed when CMD itself has ended
	Gone() <-chan struct{}     // closed when no process of the group is left, after Leader
	// Guarded passes the time of KILL to the guard.
	Guarded(kill time.Time)
}

// Outcomes, as the status file has them.
const (
	OutcomeDone        = "done"
	OutcomeLost        = "lost"
	OutcomeHeld        = "held"
	OutcomeTimeout     = "timeout"
	OutcomeInterrupted = "interrupted"
	OutcomeRevoked     = "revoked"
	OutcomeFailed      = "failed"
)

// Leftovers is the treatment of the rest of the group when CMD itself has ended.
type Leftovers string

// The treatments of leftovers.
const (
	WaitForLeftovers Leftovers = "wait"
	KillLeftovers    Leftovers = "kill"
	IgnoreLeftovers  Leftovers = "ignore"
)

// A Supervisor lets a group run while its lease is held, and ends it before the lease ends. Its
// owner sets all fields and calls Run once.
type Supervisor struct {
	Holding   Holding
	Group     Group
	Budget    Budget
	Stop      syscall.Signal   // the first signal before KILL
	OnLost    syscall.Signal   // if the lock is gone already
	Leftovers Leftovers        // of CMD
	Signals   <-chan os.Signal // to pass on
	Revoked   <-chan struct{}  // closed or sent to when another client asks for the lock
	Say       func(format string, args ...any)

	plan       *Plan
	verdict    Verdict
	interrupt  time.Time // of the last INT
	complained bool      // that KILL has no effect
}

// A Verdict is how the group's run ended.
type Verdict struct {
	Outcome  string // done, lost or revoked
	Reason   string // of a loss or a stop
	WarnedAt time.Time
	KilledAt time.Time
}

// patience is how long a group may take to end after KILL before the supervisor says so.
const patience = 5 * time.Second

// doubleInterrupt is the time in which a second INT becomes KILL.
const doubleInterrupt = 2 * time.Second

// Run returns when the group is gone, or is to be ignored. It sends no request.
func (s *Supervisor) Run() Verdict {
	s.plan, s.verdict.Outcome = NewPlan(s.Budget), OutcomeDone
	lost, leader, revoked := s.Holding.Lost(), s.Group.Leader(), s.Revoked
	timer := time.NewTimer(0)
	defer timer.Stop()
	var told time.Time // the deadline that the guard knows
	for {
		deadline := s.Holding.Deadline()
		if !deadline.Equal(told) {
			told = deadline
			s.Group.Guarded(s.Budget.Kill(deadline))
		}
		timer.Reset(s.act(deadline))
		select {
		case <-s.Group.Gone():
			return s.end()
		case <-leader:
			leader = nil
			if s.leftBehind() {
				return s.end()
			}
		case <-lost:
			lost = nil
			s.lost()
		case <-revoked:
			revoked = nil
			s.stop(OutcomeRevoked, "revoked")
		case sig := <-s.Signals:
			s.forward(sig)
		case <-timer.C:
		}
	}
}

// act does what the plan demands, and returns how long it may take to the next look. The guard has to
// learn of a deadline that moved on before it acts by the last one, so the supervisor looks often.
func (s *Supervisor) act(deadline time.Time) time.Duration {
	now := time.Now()
	action, at := s.plan.Next(now, deadline)
	tick := s.Budget.Timeout / 16
	switch action {
	case Warn:
		s.verdict.Outcome, s.verdict.Reason, s.verdict.WarnedAt = OutcomeLost, "lease_deadline", now
		s.Group.Signal(s.Stop)
		s.Say("the connection has been away for too long: %v to the command, %v before the lease ends", name(s.Stop), deadline.Sub(now).Round(time.Millisecond))
	case Kill:
		leftovers := now.Before(s.Budget.Kill(deadline)) // their grace is over, and the lease is not
		if s.verdict.Outcome == OutcomeDone && !leftovers {
			s.verdict.Outcome, s.verdict.Reason = OutcomeLost, "lease_deadline"
		}
		s.kill(now)
	case Continue:
		if at.IsZero() {
			return s.afterKill(now)
		}
		return min(tick, at.Sub(now))
	}
	return 0
}

func (s *Supervisor) kill(now time.Time) {
	s.verdict.KilledAt = now
	s.plan.Killed()
	s.Group.Signal(syscall.SIGKILL)
}

// afterKill repeats KILL, for a process that was forked meanwhile, and says if it has no effect.
func (s *Supervisor) afterKill(now time.Time) time.Duration {
	if now.Sub(s.verdict.KilledAt) >= patience && !s.complained {
		s.complained = true
		s.Say("the command does not end after KILL; the lock is kept as long as possible")
	}
	s.Group.Signal(syscall.SIGKILL)
	return patience / 10
}

// stop sends the stop signal, for another reason than the deadline.
func (s *Supervisor) stop(outcome, reason string) {
	if s.verdict.Outcome == OutcomeDone {
		s.verdict.Outcome, s.verdict.Reason = outcome, reason
	}
	s.plan.Stop(time.Now())
	s.Group.Signal(s.Stop)
}

// lost ends a group whose lock is gone.
func (s *Supervisor) lost() {
	s.verdict.Outcome, s.verdict.Reason = OutcomeLost, Reason(s.Holding.Err())
	now := time.Now()
	if s.OnLost == syscall.SIGKILL {
		s.kill(now)
	} else {
		s.plan.Stop(now)
		s.Group.Signal(s.OnLost)
	}
	s.Say("the lock is lost: %v to the command", name(s.OnLost))
}

// forward passes a signal on to the group. The second INT in a row becomes KILL.
func (s *Supervisor) forward(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok || keptBack(number) {
		return
	}
	now := time.Now()
	if number == syscall.SIGINT {
		if !s.interrupt.IsZero() && now.Sub(s.interrupt) < doubleInterrupt {
			s.kill(now)
			return
		}
		s.interrupt = now
	}
	s.Group.Signal(number)
}

// leftBehind deals with the processes of the group that CMD has left, and reports whether they are to
// be ignored.
func (s *Supervisor) leftBehind() bool {
	select {
	case <-s.Group.Gone():
		return true
	default:
	}
	switch s.Leftovers {
	case IgnoreLeftovers:
		return true
	case KillLeftovers:
		s.plan.Stop(time.Now())
		s.Group.Signal(s.Stop)
	case WaitForLeftovers:
	}
	return false
}

// end returns the verdict. A loss counts even if the group ended before the supervisor noticed it.
func (s *Supervisor) end() Verdict {
	if err := s.Holding.Err(); s.verdict.Outcome == OutcomeDone && errors.Is(err, lease.ErrLost) {
		s.verdict.Outcome, s.verdict.Reason = OutcomeLost, Reason(err)
	}
	return s.verdict
}
