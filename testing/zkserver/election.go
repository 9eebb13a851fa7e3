package zkserver

import (
	"time"
)

// With WithLeader one of the front ends leads. Three rules follow from which members reach which.
// The leader decides while it and a majority of all are neither frozen nor isolated. A front end
// looks for a leader if it has lost its leader for syncLimit ticks. A leader looks for one if it
// has lost its majority for one tick more. A majority that looks for a leader elects one.

// Leader returns the front end that leads, or leads as far as it knows while no other has
// been elected. It returns nil while none does, and always without [WithLeader].
func (s *Server) Leader() *Frontend {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader
}

// Elect starts an election. Zxids continue in the next epoch, all connections are closed, and
// every session has its full timeout again.
//
// With [WithLeader], the front ends that are neither frozen nor isolated elect a leader, as if
// they had been restarted at this moment. Elect does nothing unless they are a majority. The next
// in order after the present leader leads then. A front end that is frozen or isolated keeps its
// connections until it notices.
func (s *Server) Elect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasRoles() {
		s.newReign(s.frontends)
		return
	}
	if members := s.connected(); s.isMajority(len(members)) {
		s.elect(members)
		s.reconsider()
	}
}

// newReign begins the epoch of another leader, which gives every session its full
// timeout, and closes the connections of those that follow it.
func (s *Server) newReign(members []*Frontend) {
	for _, m := range s.outstanding {
		s.commit(m) // the majority has it
	}
	s.outstanding = nil
	s.nextEpoch()
	for _, sess := range s.sessions {
		sess.closing = false
		s.resumeSession(sess, sess.timeout, nil)
	}
	for _, f := range members {
		f.restart()
	}
}

// elect makes one of the members the leader.
func (s *Server) elect(members []*Frontend) {
	if old := s.leader; old != nil && !old.reaches() {
		s.abandonOutstanding()
		old.depose()
	}
	s.leader = s.successor(members)
	for _, f := range members {
		f.join()
		f.found()
	}
	s.quorate = true
	s.newReign(members)
	s.reaper.runLocked()
}

// successor returns the first of the members that comes after the leader of before.
func (s *Server) successor(members []*Frontend) *Frontend {
	last := noLeader
	if s.leader != nil {
		last = s.leader.number
	}
	for _, f := range members {
		if f.number > last {
			return f
		}
	}
	return members[0]
}

// reconsider applies the consequences of a change to all front ends. It needs Server.mu.
func (s *Server) reconsider() {
	if s.hasRoles() && !s.closed {
		s.reviewQuorum()
		for _, f := range s.frontends {
			f.reviewLeader()
		}
	}
	s.commitDue()
	for _, f := range s.frontends {
		f.settle()
		f.signal()
	}
}

// reviewQuorum lets those join the leader that reach it, and starts an election where one is
// possible. If a leader has its quorum again, reviewQuorum carries out what it has left undone.
func (s *Server) reviewQuorum() {
	var looking []*Frontend
	for _, f := range s.connected() {
		if f.looking && s.leader != nil && s.leader.reaches() {
			f.join()
		}
		if f.looking {
			looking = append(looking, f)
		}
	}
	if s.isMajority(len(looking)) {
		s.elect(looking)
	}
	quorate := s.decides()
	if quorate && !s.quorate {
		s.catchUp()
	}
	s.quorate = quorate
}

// hasRoles reports whether one of the front ends leads: see WithLeader.
func (s *Server) hasRoles() bool { return s.config.leader != noLeader }

func (s *Server) isMajority(n int) bool { return n > len(s.frontends)/2 }

// connected returns the front ends that reach each other.
func (s *Server) connected() []*Frontend {
	var members []*Frontend
	for _, f := range s.frontends {
		if f.reaches() {
			members = append(members, f)
		}
	}
	return members
}

// decides reports whether anything can be committed.
func (s *Server) decides() bool {
	if !s.hasRoles() {
		return true
	}
	if s.leader == nil || !s.leader.reaches() {
		return false
	}
	followers := 0
	for _, f := range s.connected() {
		if !f.looking {
			followers++
		}
	}
	return s.isMajority(followers)
}

// reaches reports whether the front end is neither dead nor frozen nor cut off.
func (f *Frontend) reaches() bool { return !f.dead && !f.frozen && !f.isolated }

// leads reports whether the front end takes itself for the leader.
func (f *Frontend) leads() bool { return f.reign != nil || f == f.server.leader }

// receivesFromLeader reports whether a leader answers what the front end asks it: by itself, if
// it leads.
func (f *Frontend) receivesFromLeader() bool {
	switch {
	case f.looking:
		return false
	case f.leads():
		return !f.frozen
	case f.server.hasRoles():
		return f.reaches() && f.server.leader != nil && f.server.leader.reaches()
	}
	return f.reaches()
}

// proposes reports whether a write that is sent to the front end is proposed. The proposals of a
// leader that has been replaced have no effect, so none of them is kept.
func (f *Frontend) proposes() bool { return f.receivesFromLeader() && f.reign == nil }

// reviewLeader starts the time that the front end has left once it is without its leader,
// or leads without a quorum, and stops it otherwise.
func (f *Frontend) reviewLeader() {
	s := f.server
	missed := !f.receivesFromLeader()
	if f.leads() {
		missed = f.reign != nil || !s.decides()
	}
	now := time.Now()
	switch {
	case f.looking || !missed:
		f.found()
	case !f.alone:
		f.alone, f.due = true, now.Add(s.limitOf(f))
		s.forgetTouches(f)
	case f.overdue && !f.frozen, f.reign != nil && f.reaches() && f.due.After(now.Add(s.config.tick)):
		// It notices at its next tick.
		f.overdue, f.due = false, now.Add(s.config.tick)
	default:
		return
	}
	if f.alone {
		f.limit.Reset(f.due.Sub(now))
	}
}

// limitOf returns for how long a front end goes on alone.
func (s *Server) limitOf(f *Frontend) time.Duration {
	ticks := s.config.syncLimit
	if f.leads() {
		ticks++
	}
	return time.Duration(ticks) * s.config.tick
}

// found ends the time that the front end has left.
func (f *Frontend) found() {
	f.alone, f.overdue = false, false
	f.limit.Stop()
}

// limitPassed is called by the timer, on a goroutine of its own.
func (f *Frontend) limitPassed() {
	s := f.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !f.alone || time.Now().Before(f.due) {
		return
	}
	if f.frozen {
		f.overdue = true
		return
	}
	f.look()
	s.reconsider()
}

// look has the front end close its connections and look for a leader. When a leader does
// so, those that it reaches do too.
func (f *Frontend) look() {
	s := f.server
	f.looking, f.reign = true, nil
	f.found()
	f.restart()
	f.awaitReadOnly()
	if f != s.leader {
		return
	}
	s.leader = nil
	s.abandonOutstanding()
	if !f.reaches() {
		return
	}
	for _, g := range s.connected() {
		if g.reign == nil && !g.looking {
			g.look()
		}
	}
}

// A leader that the others have succeeded, while it doesn't know, has a reign: the tree
// (Frontend.own) and the sessions as it knew them at that moment. It answers from them,
// counts the timeouts of those sessions by what it hears itself, and commits nothing.

// depose begins the reign.
func (f *Frontend) depose() {
	s := f.server
	f.reign = make(map[int64]*session, len(s.sessions))
	for id, sess := range s.sessions {
		known := *sess
		known.timer = nil
		f.reign[id] = &known
	}
	for c := range f.conns {
		if c.session != nil && f.reign[c.session.id] != nil {
			c.session = f.reign[c.session.id]
		}
	}
	f.settle()
}

// sessions returns those that the front end's leader knows.
func (f *Frontend) sessions() map[int64]*session {
	if f.reign != nil {
		return f.reign
	}
	return f.server.sessions
}

// lapsed reports whether the leader takes a session for over whose end it can't commit.
// Nothing brings the session back then but another leader.
func (f *Frontend) lapsed(sess *session) bool {
	if f.reign == nil && f.server.decides() {
		return false
	}
	if !sess.latest.Add(sess.timeout).After(time.Now()) {
		sess.closing = true
	}
	return sess.closing
}
