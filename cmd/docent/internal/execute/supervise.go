package execute

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/docent-go/docent/recipes/lease"
)

// A Program is CMD with all that it starts, whatever process group, session or user these processes
// change to.
type Program interface {
	Signal(sig syscall.Signal) // to CMD's process group
	// SignalAll sends the signal to CMD and all that it has started, and returns the names of those that
	// the system did not let have it.
	SignalAll(sig syscall.Signal) (refused []string)
	Left() []string          // the names of those that have not ended
	Leader() <-chan struct{} // closed when CMD itself has ended
	Gone() <-chan struct{}   // closed when nothing that CMD started is left, after Leader
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

// Leftovers is the treatment of what CMD has started, when CMD itself has ended.
type Leftovers string

// The treatments of leftovers.
const (
	WaitForLeftovers Leftovers = "wait"
	KillLeftovers    Leftovers = "kill"
	IgnoreLeftovers  Leftovers = "ignore"
)

// A Supervisor lets a program run while its lease is held, and ends it before the lease ends, by the budget. Its
// owner sets all fields and calls Run once.
type Supervisor struct {
	Holding   Holding
	Program   Program
	Budget    Budget
	Stop      syscall.Signal   // the first signal before KILL
	OnLost    syscall.Signal   // if the lock is gone already
	Leftovers Leftovers        // of CMD
	Signals   <-chan os.Signal // to pass on
	Revoked   <-chan struct{}  // closed or sent to when another client asks for the lock
	Say       func(format string, args ...any)
	Stuck     func(Verdict) // called when KILL has had no effect for long; may be nil

	killAt     time.Time // at the latest, once the program was told to stop: there is no way back, even if the deadline moves on
	verdict    Verdict
	interrupt  time.Time // of the last INT
	complained bool      // that KILL has no effect
	refused    string    // what was said of the last signal
}

// A Verdict is how the program's run ended.
type Verdict struct {
	Outcome  string // done, lost or revoked
	Reason   string // of a loss or a stop
	WarnedAt time.Time
	KilledAt time.Time
}

// patience is how long a program may take to end after KILL before the supervisor says so.
const patience = 5 * time.Second

// doubleInterrupt is the time in which a second INT becomes KILL.
const doubleInterrupt = 2 * time.Second

// Run returns when the program is gone, or what is left of it is to be ignored. It sends no request.
func (s *Supervisor) Run() Verdict {
	s.verdict.Outcome = OutcomeDone
	lost, leader, revoked := s.Holding.Lost(), s.Program.Leader(), s.Revoked
	timer := time.NewTimer(0)
	defer timer.Stop()
	var known time.Time // the deadline that the guard knows
	for {
		deadline := s.Holding.Deadline()
		if !deadline.Equal(known) {
			known = deadline
			s.Program.Guarded(s.Budget.Kill(deadline))
		}
		timer.Reset(s.act(deadline))
		select {
		case <-s.Program.Gone():
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
			s.revoke()
		case sig := <-s.Signals:
			s.forward(sig)
		case <-timer.C:
		}
	}
}

// act does what the budget demands now, and returns how long it may take to the next look. The guard has to
// learn of a deadline that moved on before it acts by the last one, so the supervisor looks often.
func (s *Supervisor) act(deadline time.Time) time.Duration {
	now, tick := time.Now(), s.Budget.Timeout/16
	warning, kill := s.Budget.Warning(deadline), s.Budget.Kill(deadline)
	stopping := !s.killAt.IsZero()
	switch {
	case !s.verdict.KilledAt.IsZero():
		return s.afterKill(now)
	case !now.Before(kill):
		if s.verdict.Outcome == OutcomeDone {
			s.verdict.Outcome, s.verdict.Reason = OutcomeLost, "lease_deadline"
		}
		s.kill(now)
	case stopping && now.Before(s.killAt):
		return min(tick, kill.Sub(now), s.killAt.Sub(now))
	case stopping: // the grace of leftovers is over, and the lease is not
		s.kill(now)
	case now.Before(warning):
		return min(tick, warning.Sub(now))
	default:
		s.killAt = kill
		s.verdict.Outcome, s.verdict.Reason, s.verdict.WarnedAt = OutcomeLost, "lease_deadline", now
		s.Say("the connection has been away for too long: %v to the command, %v before the lease ends", name(s.Stop), deadline.Sub(now).Round(time.Millisecond))
		s.signalAll(s.Stop)
	}
	return 0
}

// stop sends the signal for another reason than the deadline. KILL follows after the grace, or when it was to
// come already.
func (s *Supervisor) stop(sig syscall.Signal) {
	if s.killAt.IsZero() {
		s.killAt = time.Now().Add(s.Budget.Grace)
	}
	s.signalAll(sig)
}

func (s *Supervisor) kill(now time.Time) {
	s.verdict.KilledAt = now
	s.signalAll(syscall.SIGKILL)
}

// signalAll sends the signal to all that CMD has started, and says who did not get it.
func (s *Supervisor) signalAll(sig syscall.Signal) {
	refused := ""
	if list := s.Program.SignalAll(sig); len(list) > 0 {
		refused = fmt.Sprintf("docent may not send %v, because they run as another user: %s", name(sig), strings.Join(list, ", "))
	}
	if refused != "" && refused != s.refused { // KILL is repeated
		s.Say("%s", refused)
	}
	s.refused = refused
}

// afterKill repeats KILL, for a process that was forked meanwhile, and says if it has no effect.
func (s *Supervisor) afterKill(now time.Time) time.Duration {
	s.signalAll(syscall.SIGKILL)
	if now.Sub(s.verdict.KilledAt) < patience {
		return patience / 250
	}
	if !s.complained {
		s.complained = true
		s.complain(strings.Join(s.Program.Left(), ", "))
	}
	return patience / 10
}

// complain says that KILL has had no effect on those of the names.
func (s *Supervisor) complain(left string) {
	if left == "" {
		return // they have just ended
	}
	if s.Holding.Err() != nil {
		s.Say("the command does not end after KILL, and the lock is lost: it may run beside the next holder's command: %s", left)
	} else {
		s.Say("the command does not end after KILL; docent keeps the lock while the lease lasts: %s", left)
	}
	if s.Stuck != nil {
		s.Stuck(s.end())
	}
}

// revoke asks the program to stop, because another client asks for the lock. No KILL follows: nothing is
// lost.
func (s *Supervisor) revoke() {
	if s.verdict.Outcome == OutcomeDone {
		s.verdict.Outcome, s.verdict.Reason = OutcomeRevoked, "revoked"
	}
	s.signalAll(s.Stop)
}

// lost ends a program whose lock is gone.
func (s *Supervisor) lost() {
	s.verdict.Outcome, s.verdict.Reason = OutcomeLost, Reason(s.Holding.Err())
	s.Say("the lock is lost: %v to the command", name(s.OnLost))
	if s.OnLost == syscall.SIGKILL {
		s.kill(time.Now())
		return
	}
	s.stop(s.OnLost)
}

// forward passes a signal on: one that asks to end goes to all that CMD has started, any other one to
// CMD's process group. The second INT in a row becomes KILL.
func (s *Supervisor) forward(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok || keptBack(number) {
		return
	}
	now := time.Now()
	switch number {
	case syscall.SIGINT:
		if !s.interrupt.IsZero() && now.Sub(s.interrupt) < doubleInterrupt {
			s.kill(now)
			return
		}
		s.interrupt = now
		s.signalAll(number)
	case syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		s.signalAll(number)
	case syscall.SIGKILL: // the guard has died: see newGuardian
		s.kill(now)
	default:
		s.Program.Signal(number)
	}
}

// leftBehind deals with what CMD has left behind, and reports whether that is to be ignored.
func (s *Supervisor) leftBehind() bool {
	select {
	case <-s.Program.Gone():
		return true
	default:
	}
	switch s.Leftovers {
	case IgnoreLeftovers:
		return true
	case KillLeftovers:
		s.stop(s.Stop)
	case WaitForLeftovers:
	}
	return false
}

// end returns the verdict. A loss counts even if the program ended before the supervisor noticed it.
func (s *Supervisor) end() Verdict {
	if err := s.Holding.Err(); s.verdict.Outcome == OutcomeDone && errors.Is(err, lease.ErrLost) {
		s.verdict.Outcome, s.verdict.Reason = OutcomeLost, Reason(err)
	}
	return s.verdict
}
