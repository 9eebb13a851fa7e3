package session

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/requests"
	"github.com/docent-go/docent/framework/internal/wire"
)

// Fractions of the session timeout T that pace proofs.
const (
	beatFraction     = 4  // a heartbeat if nothing was proven for T/4 …
	fastBeatFraction = 8  // … or T/8, if T/4 is shorter than the margin
	chanceFraction   = 8  // a connection is left if a heartbeat has no reply T/8 before the deadline
	graceFraction    = 16 // a hold that isn't secured has T/16 for a write of its own

	// A connection without progress is given the time that what is in flight takes, up to 3T/8.
	dueNumerator, dueDenominator = 1, 8
)

// A pace says when heartbeats and touches go out.
type pace struct {
	beat time.Duration // from one proof to the next
	lead time.Duration // a heartbeat proves a request that was sent this long before
}

// paceOf returns the pace for a session timeout and a lease margin.
//
// A heartbeat proves requests that were sent at least a margin before it. If T/4 is longer than the
// margin, a touch goes out ahead of each heartbeat, so that the heartbeat has a recent request to
// prove. If T/4 is shorter, heartbeats go out twice as often and prove each other.
func paceOf(timeout, margin time.Duration) pace {
	p := pace{beat: timeout / beatFraction, lead: margin + margin/wire.ContactsPerMargin}
	if p.beat < p.lead {
		p.beat = timeout / fastBeatFraction
	}
	return p
}

// tendHoldsLocked keeps the deadline fresh and notices a server that stopped.
func (s *Session) tendHoldsLocked(due *soonest, held heldNow, st wire.Status) {
	// What is in flight may take its time: without it, a slow link that carries a large request would count
	// as a server that stopped.
	stall := min(st.Timeout/stallFraction, s.cfg.ConnectTimeout)
	stall += min(st.Due, st.Timeout*dueNumerator/dueDenominator)
	switch beat, touch := s.beatsLocked(held, st); {
	case s.sent.heartbeat:
	case !beat.After(due.now):
		s.proveLocked(due.now)
	default:
		due.at(beat)
		s.touchLocked(due, touch)
	}
	waiting := !st.Waiting.IsZero()
	switch {
	case waiting && !st.Waiting.Add(stall).After(due.now):
		due.cut, due.stalled = fmt.Errorf("server did not answer for %v", stall), true
	case waiting:
		due.at(st.Waiting.Add(stall))
	case s.sent.heartbeat || s.sent.touch:
		due.at(due.now.Add(stall)) // the request is about to be sent
	}
	s.tendLastChanceLocked(due, held, st)
}

// tendLastChanceLocked closes a connection on which a heartbeat waits behind other replies until shortly before the
// deadline: the link has become slower than what is in flight was meant for. The deadline would end the connection,
// too, and on the next one a heartbeat goes first. While little is in flight, it is the heartbeat itself that takes long:
// the next connection would take longer. It needs mu.
func (s *Session) tendLastChanceLocked(due *soonest, held heldNow, st wire.Status) {
	beats := s.sent.heartbeat && !s.heartbeatAt.IsZero() && !st.Sent.Before(s.heartbeatAt) // sent on this connection
	if held.secured == 0 || st.Due == 0 || !beats {
		return
	}
	chance := st.Timeout / chanceFraction
	last := later(st.Deadline.Add(-chance), s.heartbeatAt.Add(chance))
	if last.After(due.now) {
		due.at(last)
		return
	}
	due.cut = errors.New("replies ahead of a heartbeat's took too long")
}

// beatsLocked returns when the next heartbeat and the touch ahead of it are due. After a resumption
// nothing is proven, so a heartbeat is due at once. A write mostly follows a new hold, and proves
// as much as a heartbeat. It needs mu.
func (s *Session) beatsLocked(held heldNow, st wire.Status) (beat, touch time.Time) {
	timeout := st.Timeout
	p := paceOf(timeout, s.cfg.Margin(timeout))
	beat = st.Proven.Add(p.beat)
	if next := s.heartbeatAt.Add(timeout / graceFraction); next.After(beat) {
		beat = next // the reply to the last heartbeat proved nothing
	}
	if grace := held.since.Add(timeout / graceFraction); held.secured == 0 && grace.After(beat) {
		beat = grace
	}
	touch = beat.Add(-p.lead)
	if p.lead >= p.beat || !st.Sent.Before(touch) {
		touch = beat
	}
	return beat, touch
}

// proveLocked sends a heartbeat; its reply will move the deadline. It needs mu.
func (s *Session) proveLocked(now time.Time) {
	s.heartbeatAt = now
	s.sendLocked(requests.Prove(), &s.sent.heartbeat, func(err error) {
		s.cfg.Log.Debug("heartbeat failed", zap.Error(err))
	})
}

// proveFirst sends the heartbeat that follows a resumption. Requests that wait for a connection go out
// behind it. There may be many of them, such as the reads of all watched znodes, and the server replies
// in order.
func (s *Session) proveFirst() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heldNow().holds > 0 && !s.sent.heartbeat {
		s.proveLocked(time.Now())
	}
}

// touchLocked sends a request that only the connected server answers, if it is due. It needs mu.
func (s *Session) touchLocked(due *soonest, at time.Time) {
	switch {
	case s.sent.touch:
	case at.After(due.now):
		due.at(at)
	default:
		s.sendLocked(requests.Touch(), &s.sent.touch, func(err error) {
			s.cfg.Log.Debug("touch failed", zap.Error(err))
		})
	}
}

// sendLocked sends a request of the session's own. pending is true until it has ended. If the connection
// has ended, nothing is sent, and the report of that end follows. It needs mu.
func (s *Session) sendLocked(rq requests.Request[struct{}], pending *bool, failed func(error)) {
	sent := &wire.Request{Opcode: rq.Opcode, Body: rq.Body, Limit: s.cfg.MaxReply, Class: wire.Proof}
	if !s.wire.Send(sent) {
		return
	}
	*pending = s.cfg.Client.Spawn(func() { // ends with the reply or the connection
		<-sent.Done()
		answer, err := sent.Answer()
		if err == nil {
			_, err = rq.Decode(answer)
		}
		if err != nil {
			failed(err)
		}
		s.mu.Lock()
		*pending = false
		s.mu.Unlock()
		s.Wake()
	})
}
