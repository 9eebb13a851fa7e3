package zkserver

import "time"

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
