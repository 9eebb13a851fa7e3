package inspect

import "fmt"

// oldSessions returns a finding for each contender whose owner has a contender in a newer session of
// the same process. The process may have lost the older session, which exists until its timeout is
// over. A program that uses two clients for one owner has two sessions, too.
func oldSessions(s Snapshot) []Finding {
	newest := make(map[string]Contender)
	each := func(fn func(process string, c Contender)) {
		for _, l := range s.Locks {
			for _, c := range l.Contenders {
				if p := PartyOf(c); p.Strength == Exact {
					fn(fmt.Sprintf("%s %s %d", p.ID, p.Host, p.PID), c)
				}
			}
		}
	}
	each(func(process string, c Contender) {
		if c.Czxid > newest[process].Czxid {
			newest[process] = c
		}
	})
	var found []Finding
	each(func(process string, c Contender) {
		if later := newest[process]; later.Session != c.Session {
			found = append(found, Finding{
				Severity: Info, Problem: OldSession, Path: c.Znode, Parties: []Party{PartyOf(c)},
				Text:   fmt.Sprintf("its owner has a newer session, 0x%x", uint64(later.Session)),
				Advice: "If the process has lost the older session, it ends within the session timeout, and the znode with it.",
			})
		}
	})
	return found
}
