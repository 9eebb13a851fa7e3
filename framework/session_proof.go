package framework

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
)

// Fractions of the session timeout T that pace proofs.
const (
	beatFraction     = 4  // a heartbeat where nothing was proven for T/4 …
	fastBeatFraction = 8  // … or T/8, if T/4 is shorter than the margin
	graceFraction    = 16 // a hold that isn't secured has T/16 for a write of its own
)

// A pace says when heartbeats and touches go out.
type pace struct {
	beat time.Duration // from one proof to the next
	lead time.Duration // a request sent that long before a heartbeat is proven by it
}

// paceOf returns the pace for a session timeout and a lease margin.
//
// A heartbeat proves what was sent a margin before it. Where T/4 is longer than that, a
// touch goes out ahead of each heartbeat, so that the heartbeat has a fresh request to
// prove. Where it is shorter, heartbeats go out twice as often and prove each other.
func paceOf(timeout, margin time.Duration) pace {
	p := pace{beat: timeout / beatFraction, lead: margin + margin/tap.ContactsPerMargin}
	if p.beat < p.lead {
		p.beat = timeout / fastBeatFraction
	}
	return p
}

// tendHoldsLocked keeps the deadline fresh and notices a server that stopped.
func (s *session) tendHoldsLocked(due *soonest) {
	stall := min(s.timeout()/stallFraction, s.core.cfg.connectTimeout)
	switch beat, touch := s.beatsLocked(); {
	case s.sent.heartbeat:
	case !beat.After(due.now):
		s.proveLocked(due.now)
	default:
		due.at(beat)
		s.touchLocked(due, touch)
	}
	sent, waiting := s.tap.OldestUnanswered()
	switch {
	case waiting && !sent.Add(stall).After(due.now):
		s.core.log.Debug("server stopped answering")
		due.cut = fmt.Errorf("server did not answer for %v", stall)
	case waiting:
		due.at(sent.Add(stall))
	case s.sent.heartbeat || s.sent.touch:
		due.at(due.now.Add(stall)) // the request is about to leave
	}
}

// beatsLocked returns when the next heartbeat is due, and the touch ahead of it. After
// a resumption nothing is proven, so a heartbeat is due at once. A hold is mostly
// followed by a write, which is as good as a heartbeat. It needs mu.
func (s *session) beatsLocked() (beat, touch time.Time) {
	timeout := s.timeout()
	p := paceOf(timeout, s.core.cfg.margin(timeout))
	beat = s.tap.Proven().Add(p.beat)
	if again := s.beaten.Add(timeout / graceFraction); again.After(beat) {
		beat = again // the answer to the last one proved nothing
	}
	if grace := s.heldSince.Add(timeout / graceFraction); s.secured == 0 && grace.After(beat) {
		beat = grace
	}
	touch = beat.Add(-p.lead)
	if p.lead >= p.beat || !s.tap.Sent().Before(touch) {
		touch = beat
	}
	return beat, touch
}

// proveLocked sends a heartbeat, whose answer will move the deadline. It needs mu.
func (s *session) proveLocked(now time.Time) {
	s.beaten = now
	s.sent.heartbeat = s.core.spawn(func() { // ends with the answer or the wire
		if err := s.wire.Prove(); err != nil {
			s.core.log.Debug("heartbeat failed", zapError(err))
		}
		s.mu.Lock()
		s.sent.heartbeat = false
		s.mu.Unlock()
		s.wake()
	})
}

// touchLocked sends a request that only the connected server answers, if that is due.
// It needs mu.
func (s *session) touchLocked(due *soonest, at time.Time) {
	switch {
	case s.sent.touch:
	case at.After(due.now):
		due.at(at)
	default:
		s.sent.touch = s.core.spawn(func() { // ends with the answer or the wire
			if err := s.wire.Touch(); err != nil {
				s.core.log.Debug("touch failed", zapError(err))
			}
			s.mu.Lock()
			s.sent.touch = false
			s.mu.Unlock()
			s.wake()
		})
	}
}
