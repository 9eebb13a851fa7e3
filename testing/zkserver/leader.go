package zkserver

import (
	"slices"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkversion"
	"github.com/docent-go/docent/testing/fault"
)

// A commit is a decision of the leader on its way to the front ends.
type commit struct {
	txn       *txn
	answer    func(x *txn, after []proto.Stat) []byte // for the client that asked; nil if none did
	reply     []byte                                  // what answer has returned
	origin    *conn                                   // that client's connection; nil if the server itself decided
	injection *fault.Injection                        // the fault for the reply
	moved     bool                                    // the client is to be left without a reply

	opened  *session // the session that this begins
	ended   int64    // the session that this ends, 0 if none
	dropped *session // that session
	sync    *request // set if this is no decision but a place in their order

	records map[string]*record // what it makes of nodes, while it is outstanding
	due     time.Time          // when it is committed then

	delivered bool
	done      chan struct{} // closed when delivered to the origin, if a caller waits
}

// submit decides on a write of c's client, and puts a sync into the order of decisions.
func (s *Server) submit(c *conn, r *request) *commit {
	switch {
	case r.op == proto.OpSync:
		m := &commit{txn: &txn{}, origin: c, sync: r}
		s.enqueue(m)
		return m
	case r.op == proto.OpCloseSession && s.sessions[c.session.id] == c.session:
		return s.endSessionFor(c, r)
	case s.sessions[c.session.id] != c.session:
		return s.refuse(c, r, proto.CodeSessionExpired)
	case !c.session.claim(c.front):
		return s.refuse(c, r, proto.CodeSessionMoved)
	}
	p := s.newPrep(c.session.id, c.ids)
	if r.op == proto.OpMulti {
		return s.submitMulti(c, r, p)
	}
	chg, err := p.check(r)
	if err != proto.CodeOK {
		return s.refuse(c, r, err)
	}
	m := &commit{origin: c, records: p.pending, answer: func(x *txn, after []proto.Stat) []byte {
		return writeReply(r, x.zxid, &x.changes[0], after[0])
	}}
	s.propose(m, []change{chg})
	return m
}

// refuse answers a write with an error. It takes a zxid, as everything that has come
// as far as the leader.
func (s *Server) refuse(c *conn, r *request, err proto.Code) *commit {
	m := &commit{origin: c, moved: err == proto.CodeSessionMoved, answer: func(x *txn, _ []proto.Stat) []byte {
		return errorReply(r.xid, x.zxid, err)
	}}
	s.propose(m, nil)
	return m
}

// submitMulti decides on all operations or none.
func (s *Server) submitMulti(c *conn, r *request, p *prep) *commit {
	if s.config.has(zkversion.StrictTransactions) && slices.ContainsFunc(r.ops, request.hasUnknownMode) {
		return s.refuse(c, r, proto.CodeMarshallingError)
	}
	changes := make([]change, 0, len(r.ops))
	failed, failure := -1, proto.CodeOK
	for i := range r.ops {
		chg, err := p.check(&r.ops[i])
		if err != proto.CodeOK {
			failed, failure = i, err
			changes = nil
			break
		}
		changes = append(changes, chg)
	}
	m := &commit{origin: c, records: p.pending, answer: func(x *txn, after []proto.Stat) []byte {
		return multiReply(r, x.zxid, changes, after, s.config.has(zkversion.StrictTransactions))
	}}
	if failed >= 0 {
		m.records = nil
		m.answer = func(x *txn, _ []proto.Stat) []byte { return multiFailure(r, x.zxid, failed, failure) }
	}
	s.propose(m, changes)
	return m
}

// openSession begins a session for the client that has connected with c.
func (s *Server) openSession(c *conn, r *proto.ConnectRequest) *commit {
	sess := s.newSession(s.negotiate(r.Timeout), c.front)
	m := &commit{origin: c, opened: sess, answer: func(*txn, []proto.Stat) []byte { return connectReply(r, sess, false) }}
	s.propose(m, nil)
	return m
}

// endSession ends a session whose client has not asked for it.
func (s *Server) endSession(sess *session) {
	m := &commit{ended: sess.id}
	s.propose(m, s.dropSession(m, sess))
}

func (s *Server) endSessionFor(c *conn, r *request) *commit {
	m := &commit{origin: c, ended: c.session.id, answer: func(x *txn, _ []proto.Stat) []byte {
		return errorReply(r.xid, x.zxid, proto.CodeOK)
	}}
	s.propose(m, s.dropSession(m, c.session))
	return m
}

// dropSession forgets the session and returns the deletions that m, its end, entails.
func (s *Server) dropSession(m *commit, sess *session) []change {
	delete(s.sessions, sess.id)
	sess.timer.Stop()
	sess.closing = true
	m.dropped = sess
	m.records = map[string]*record{}
	var changes []change
	for _, path := range s.ephemeralsToBe(sess.id) {
		changes = append(changes, change{kind: changeDelete, path: path})
		m.records[path] = &record{gone: true}
	}
	return changes
}

// removeReapable deletes a container or TTL node that is due.
func (s *Server) removeReapable(path string) {
	p := s.newPrep(0, nil)
	chg, err := p.check(&request{op: proto.OpDeleteContainer, path: path})
	if err != proto.CodeOK {
		return
	}
	s.propose(&commit{records: p.pending}, []change{chg})
}

// nextEpoch makes the next zxid the first of a new leader.
func (s *Server) nextEpoch() {
	epoch := s.zxid>>32 + 1
	s.zxid = epoch<<32 - 1
	m := s.newCommit(&commit{}, nil)
	s.commit(m)
}
