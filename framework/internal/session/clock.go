package session

import (
	"fmt"
	"time"
)

// Fractions of the session timeout T that pace a session. docs/adr/0009-committed-heartbeat.md has
// a table of the time that they leave in the worst case.
const (
	stallFraction   = 4  // if a reply takes longer than T/4, the connection is closed
	connectFraction = 4  // an attempt to reconnect gets at most T/4
	pauseFraction   = 16 // a pause between attempts takes at most T/16
	touchFraction   = 2  // if there is no reply for T/2, a touch is sent: pings go out every T/3
	earlyFraction   = 16 // a session ends at most T/16 before its deadline, however many holds it has
)

// notifyTime is how long it takes to notify the owner of a secured hold of its loss: a lease with a
// context that is waited for, measured on a busy machine.
const notifyTime = 4 * time.Microsecond

// tend does what is due, and returns when to look again, or 0.
func (s *Session) tend(now time.Time) time.Duration {
	due := soonest{now: now}
	s.findDue(&due)
	if due.cut != nil {
		if due.stalled {
			s.cfg.Log.Debug("server stopped answering")
		}
		s.wire.CloseConn(due.cut)
	}
	return due.wait()
}

// findDue finds the work that is due, and when to look again.
func (s *Session) findDue(due *soonest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.wire.Status()
	if s.Ended() != nil || st.Timeout == 0 {
		return
	}
	if !s.up.IsZero() && !s.serving {
		s.tendProbeLocked(due)
	}
	if !s.serving {
		return
	}
	if held := s.heldNow(); held.holds > 0 {
		s.tendHoldsLocked(due, held, st)
	}
	s.touchLocked(due, st.Presumed.Add(-st.Timeout/touchFraction))
	s.tendDepartureLocked(due)
}

// tendProbeLocked closes a connection if a probe on it gets no reply.
func (s *Session) tendProbeLocked(due *soonest) {
	limit := s.up.Add(s.cfg.ConnectTimeout)
	if limit.After(due.now) {
		due.at(limit)
		return
	}
	s.up = time.Time{}
	due.cut = fmt.Errorf("server did not answer a probe for %v", s.cfg.ConnectTimeout)
}

// A soonest finds the time until the first of several instants.
type soonest struct {
	now   time.Time
	first time.Time
	cut   error // why the connection is to be closed; may be nil

	stalled bool // that is because the server stopped answering
}

func (d *soonest) at(t time.Time) {
	if d.first.IsZero() || t.Before(d.first) {
		d.first = t
	}
}

// wait returns the time until the first instant, at least a little, or 0 if there is none.
func (d *soonest) wait() time.Duration {
	if d.first.IsZero() {
		return 0
	}
	return max(d.first.Sub(d.now), time.Millisecond)
}
