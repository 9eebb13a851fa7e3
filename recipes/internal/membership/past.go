package membership

// A Past has the sessions of one client in which znodes at one path may have been created: the recipe was
// given the path, while [Names] are for paths that a recipe names itself. One goroutine uses a Past. The
// zero Past is empty.
//
// A znode that a client has left behind exists until its end is proven, and servers and other clients take
// it for a living one. So before a recipe counts, creates or deletes a znode, each of its former ones has
// to be gone, adopted or known to be another client's. What can still happen to a path, by requests of a
// session that has ended, of a call that was withdrawn, or of an unknown outcome:
//
//   - the znode exists until the ensemble has expired the session, or a delete succeeds
//   - a create whose outcome is unknown may be applied late, but not while a znode is at its path
//   - a delete whose outcome is unknown may be applied late, to whatever znode is at its path
type Past struct {
	sessions map[int64]certainty
	before   certainty // of the session of the latest create
}

type certainty int

const (
	unknown certainty = iota + 1 // a create may be applied late
	created                      // there was a znode
)

// Creates records that a create is about to be sent in the session.
func (p *Past) Creates(session int64) {
	if p.sessions == nil {
		p.sessions = make(map[int64]certainty)
	}
	p.before = p.sessions[session]
	p.sessions[session] = unknown
}

// Created records that the create has succeeded. So the znodes of all other sessions are gone, except
// those whose creates may be applied late.
func (p *Past) Created(session int64) {
	for id, c := range p.sessions {
		if c == created {
			delete(p.sessions, id)
		}
	}
	p.sessions[session] = created
}

// Refused records that the create has certainly not been applied.
func (p *Past) Refused(session int64) {
	if p.sessions[session] = p.before; p.before == 0 {
		delete(p.sessions, session)
	}
}

// Has reports whether a znode that belongs to the owner is a former one, which may be deleted. present
// is the client's session now: of its znodes the recipe knows the czxid.
func (p *Past) Has(owner, present int64) bool {
	return owner != present && p.sessions[owner] != 0
}
