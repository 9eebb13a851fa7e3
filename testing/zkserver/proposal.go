package zkserver

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
)

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
		if ra, rb := rank(a), rank(b); ra != rb {
			return cmp.Compare(ra, rb)
		}
		return strings.Compare(a, b)
	})
	return paths
}
