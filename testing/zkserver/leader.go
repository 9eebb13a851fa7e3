package zkserver

import (
	"time"
)

// A commit is a decision of the leader on its way to the front ends.
type commit struct {
	txn    *txn
	reply  []byte // for the client that asked; nil if none did
	origin *conn  // that client's connection; nil if the server itself decided

	opened *session // the session that this begins
	ended  int64    // the session that this ends, 0 if none
	sync   *request // set if this is no decision but a place in their order

	delivered bool
	done      chan struct{} // closed when delivered to the origin, if anybody waits
}

// decide gives the changes the next zxid, applies them to the leader's tree and
// returns the transaction and the stats for the reply.
func (s *Server) decide(changes []change) (*txn, []stat) {
	s.zxid++
	x := &txn{zxid: s.zxid, time: time.Now().Add(s.shift).UnixMilli(), changes: changes}
	stats := s.tree.apply(x)
	s.reaper.noticeLocked(x)
	return x, stats
}

// publish sends a decision to every front end.
func (s *Server) publish(m *commit) {
	s.observe(m)
	for _, f := range s.frontends {
		f.deliver(m)
	}
}

// submit decides on a write of c's client. It returns nil if the session has moved
// to another front end: c must be closed without an answer.
func (s *Server) submit(c *conn, r *request) *commit {
	if s.sessions[c.session.id] != c.session {
		return s.refuse(c, r, codeSessionExpired)
	}
	if !c.session.claim(c.front) {
		return nil
	}
	switch r.op {
	case opCloseSession:
		return s.endSessionFor(c, r)
	case opSync:
		m := &commit{txn: &txn{}, origin: c, sync: r}
		c.front.deliver(m)
		return m
	}
	p := &prep{tree: s.tree, session: c.session.id, ids: c.ids, ttl: s.config.ttl}
	if r.op == opMulti {
		return s.submitMulti(c, r, p)
	}
	chg, err := p.check(r)
	if err != codeOK {
		return s.refuse(c, r, err)
	}
	x, stats := s.decide([]change{chg})
	m := &commit{txn: x, origin: c, reply: writeReply(r, x.zxid, &chg, stats[0])}
	s.publish(m)
	return m
}

// refuse answers a write with an error. It takes a zxid, as everything that has come
// as far as the leader.
func (s *Server) refuse(c *conn, r *request, err code) *commit {
	x, _ := s.decide(nil)
	m := &commit{txn: x, origin: c, reply: errorReply(r.xid, x.zxid, err)}
	s.publish(m)
	return m
}

// submitMulti decides on all operations or none.
func (s *Server) submitMulti(c *conn, r *request, p *prep) *commit {
	changes := make([]change, 0, len(r.ops))
	failed, failure := -1, codeOK
	for i := range r.ops {
		chg, err := p.check(&r.ops[i])
		if err != codeOK {
			failed, failure = i, err
			changes = nil
			break
		}
		changes = append(changes, chg)
	}
	x, stats := s.decide(changes)
	m := &commit{txn: x, origin: c}
	if failed >= 0 {
		m.reply = multiFailure(r, x.zxid, failed, failure)
	} else {
		m.reply = multiReply(r, x.zxid, changes, stats)
	}
	s.publish(m)
	return m
}

// openSession begins a session for the client that has connected with c.
func (s *Server) openSession(c *conn, r *connectRequest) *commit {
	sess := s.newSession(s.negotiate(r.timeout), c.front)
	x, _ := s.decide(nil)
	m := &commit{txn: x, origin: c, opened: sess, reply: connectReply(r, sess)}
	s.publish(m)
	return m
}

// endSession ends a session whose client has not asked for it.
func (s *Server) endSession(sess *session) {
	x, _ := s.decide(s.dropSession(sess))
	s.publish(&commit{txn: x, ended: sess.id})
}

func (s *Server) endSessionFor(c *conn, r *request) *commit {
	x, _ := s.decide(s.dropSession(c.session))
	m := &commit{txn: x, origin: c, ended: c.session.id, reply: errorReply(r.xid, x.zxid, codeOK)}
	s.publish(m)
	return m
}

// dropSession forgets the session and returns the deletions that this entails.
func (s *Server) dropSession(sess *session) []change {
	delete(s.sessions, sess.id)
	sess.timer.Stop()
	var changes []change
	for _, path := range s.tree.ephemeralsOf(sess.id) {
		changes = append(changes, change{kind: changeDelete, path: path})
	}
	return changes
}

// removeReapable deletes a container or TTL node that is due.
func (s *Server) removeReapable(path string) {
	p := &prep{tree: s.tree}
	chg, err := p.check(&request{op: opDeleteContainer, path: path})
	if err != codeOK {
		return
	}
	x, _ := s.decide([]change{chg})
	s.publish(&commit{txn: x})
}

// nextEpoch makes the next zxid the first of a new leader.
func (s *Server) nextEpoch() {
	epoch := s.zxid>>32 + 1
	s.zxid = epoch<<32 - 1
	x, _ := s.decide(nil)
	s.publish(&commit{txn: x})
}
