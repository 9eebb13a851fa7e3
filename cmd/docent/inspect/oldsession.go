package inspect

import "fmt"

// oldSessions returns a finding for each contender whose owner has a contender in a newer session of
// the same process. The process may have lost the older session, which exists until its timeout is
// over. A program that uses two clients for one owner has two sessions, too.
func oldSessions(s Snapshot) []Finding {
	var found []Finding
	newest := newestOf(s.Locks)
	for _, l := range s.Locks {
		for _, c := range l.Contenders {
			if later := newest.session(c); later != c.Session {
				found = append(found, Finding{
					Severity: Info, Problem: OldSession, Path: c.Znode, Parties: []Party{PartyOf(c)},
					Text:   fmt.Sprintf("its owner has a newer session, 0x%x", uint64(later)),
					Advice: "If the process has lost the older session, it ends within the session timeout, and the znode with it.",
				})
			}
		}
	}
	return found
}

// newest has the newest contender of each owner in each process.
type newest map[string]Contender

func newestOf(locks []Lock) newest {
	n := make(newest)
	for _, l := range locks {
		for _, c := range l.Contenders {
			if owner, known := ownerInProcess(c); known && c.Czxid > n[owner].Czxid {
				n[owner] = c
			}
		}
	}
	return n
}

// session returns the session of the owner's newest contender in the contender's process. That of an
// owner who is not known for certain is the contender's own.
func (n newest) session(c Contender) int64 {
	if owner, known := ownerInProcess(c); known {
		return n[owner].Session
	}
	return c.Session
}

// isOld reports whether the owner has a newer session in the contender's process.
func (n newest) isOld(c Contender) bool { return n.session(c) != c.Session }

// mayEnd reports whether the edge may end with a session that the process has lost.
func (n newest) mayEnd(e Edge) bool { return n.isOld(e.Waiter) || n.isOld(e.Blocker) }

func ownerInProcess(c Contender) (owner string, known bool) {
	p := PartyOf(c)
	return fmt.Sprintf("%s %s %d", p.ID, p.Host, p.PID), p.Strength == Exact
}
