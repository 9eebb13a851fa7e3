package zkserver

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
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
		changes = append(changes, change{kind: Deleted, path: path})
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

// The leader's proposals are committed when the commit time has passed, in order, and only then
// are in any tree. Until then they are outstanding. Requests are checked against the records of
// what the outstanding ones will have made of their znodes, as in ZooKeeper's
// PrepRequestProcessor.

// newPrep returns what checks the operations of one request.
func (s *Server) newPrep(session int64, ids []authID) *prep {
	return &prep{tree: s.tree, outstanding: s.records, session: session, ids: ids}
}

// newCommit gives m's changes the next zxid.
func (s *Server) newCommit(m *commit, changes []change) *commit {
	s.zxid++
	m.txn = &txn{zxid: s.zxid, time: time.Now().Add(s.shift).UnixMilli(), changes: changes}
	return m
}

// propose gives m's changes the next zxid and has them committed.
func (s *Server) propose(m *commit, changes []change) {
	s.newCommit(m, changes)
	maps.Copy(s.records, m.records)
	s.enqueue(m)
}

// enqueue has m committed behind what is outstanding, or at once.
func (s *Server) enqueue(m *commit) {
	if c := m.origin; c != nil {
		m.injection, c.injection = c.injection, nil
	}
	m.due = time.Now()
	if m.sync == nil {
		m.due = m.due.Add(s.config.commitTime)
	}
	s.outstanding = append(s.outstanding, m)
	s.commitDue()
}

// commitDue commits what is due, while anything can be committed.
func (s *Server) commitDue() {
	now := time.Now()
	for len(s.outstanding) > 0 && !s.frozen && s.decides() {
		m := s.outstanding[0]
		if left := m.due.Sub(now); left > 0 {
			s.commitTimer.Reset(left)
			return
		}
		s.outstanding = s.outstanding[1:]
		s.commit(m)
	}
}

// commitTimerFired is called by the timer, on a goroutine of its own.
func (s *Server) commitTimerFired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.commitDue()
	}
}

// commit applies m to the leader's tree and hands it to the front ends.
func (s *Server) commit(m *commit) {
	if m.sync != nil {
		m.origin.front.deliver(m)
		return
	}
	after := s.tree.apply(m.txn)
	if m.answer != nil {
		m.reply = m.answer(m.txn, after)
	}
	s.forget(m)
	if m.opened != nil {
		s.track(m.opened)
	}
	s.reaper.noticeLocked(m.txn)
	s.observe(m)
	for _, f := range s.frontends {
		f.deliver(m)
	}
}

// forget drops m's records, but for those that a later proposal has replaced.
func (s *Server) forget(m *commit) {
	for path, r := range m.records {
		if s.records[path] == r {
			delete(s.records, path)
		}
	}
}

// abandonOutstanding loses what has been proposed, because the leader that proposed it is replaced
// by one that has not received it.
func (s *Server) abandonOutstanding() {
	for _, m := range s.outstanding {
		if m.dropped != nil {
			s.sessions[m.ended] = m.dropped
		}
	}
	s.outstanding = nil
	clear(s.records)
}

// ephemeralsToBe returns the ephemeral nodes that a session has once what is outstanding
// is committed. Their order, in which they go with the session, follows from the seed:
// ZooKeeper's is that of a hash table.
func (s *Server) ephemeralsToBe(session int64) []string {
	paths := slices.DeleteFunc(s.tree.ephemeralsOf(session), func(path string) bool { return s.records[path] != nil })
	for path, r := range s.records {
		if !r.gone && r.stat.EphemeralOwner == session {
			paths = append(paths, path)
		}
	}
	rank := func(path string) uint64 {
		h := fnv.New64a()
		for seed := s.config.seed; seed > 0; seed >>= 8 {
			h.Write([]byte{byte(seed)})
		}
		h.Write([]byte(path))
		return h.Sum64()
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	return paths
}
