package zkserver

import (
	"bytes"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// readOnlyDelay is how long ZooKeeper looks for a leader before it serves reads, unless a tick is
// longer.
const readOnlyDelay = 2 * time.Second

// WithReadOnlyMode lets a front end that has no leader serve reads, as ZooKeeper does with
// readonlymode.enabled. It needs [WithLeader]. Such a front end closes the connection of a client
// that does not ask for a read-only server. It does the same to a client that resumes a session of
// the ensemble. It refuses writes and syncs. If localSessions says that the servers have
// localSessionsEnabled, it begins sessions of its own, which end when it finds a leader. The
// default is to serve no client.
func WithReadOnlyMode(localSessions bool) Option {
	return option(func(c *config) { c.readOnly, c.localSessions = true, localSessions })
}

// awaitReadOnly has the front end serve reads if it does not find a leader soon.
func (f *Frontend) awaitReadOnly() {
	if f.server.config.readOnly {
		f.lone.Reset(max(readOnlyDelay, f.server.config.tick))
	}
}

// lonePassed is called by the timer, on a goroutine of its own.
func (f *Frontend) lonePassed() {
	s := f.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || f.dead || !f.looking:
	case f.frozen:
		f.lone.Reset(s.config.tick)
	default:
		f.readOnly = map[int64]*session{}
	}
}

// join ends the front end's search for a leader.
func (f *Frontend) join() {
	f.looking, f.reign = false, nil
	f.lone.Stop()
	if f.readOnly != nil {
		f.readOnly = nil
		f.killAll()
	}
}

// readsOnly reports whether the connection is one to a read-only front end.
func (c *conn) readsOnly() bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.front.readOnly != nil
}

// handshakeReadOnly opens or resumes a local session. It needs Server.mu.
func (c *conn) handshakeReadOnly(r *proto.ConnectRequest) bool {
	f := c.front
	sess := f.readOnly[r.Session]
	switch {
	case !r.ReadOnly, r.Session != 0 && (sess == nil || !bytes.Equal(sess.password, r.Password)):
		c.kill()
		return false
	case r.Session == 0 && !c.server.config.localSessions:
		c.reply(errorReply(0, f.view().zxid, proto.CodeNotReadOnly)) // which is no answer to a handshake
		return true
	case r.Session == 0:
		sess = c.server.newSession(c.server.negotiate(r.Timeout), f)
		f.readOnly[sess.id] = sess
	}
	c.session = sess
	f.attach[sess.id] = c
	c.reply(connectReply(r, sess, true))
	return true
}

// serveReadOnly carries out a read and refuses what takes a leader.
func (c *conn) serveReadOnly(r *request) bool {
	s := c.server
	s.mu.Lock()
	switch {
	case c.session == nil: // the handshake was refused
		c.dropInjection()
		s.mu.Unlock()
		return true
	case r.op == proto.OpCloseSession:
		defer s.mu.Unlock()
		delete(c.front.readOnly, c.session.id)
		c.reply(errorReply(r.xid, c.front.view().zxid, proto.CodeOK))
		c.finish()
		return false
	case r.op == proto.OpSync || isWrite(r.op):
		defer s.mu.Unlock()
		c.reply(errorReply(r.xid, c.front.view().zxid, proto.CodeNotReadOnly))
		return true
	}
	s.mu.Unlock()
	return c.serveHere(r)
}
