package zkserver

import (
	"bytes"
	"context"
	"slices"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
)

// garbage is what answers a handshake when a fault rule wants it: the words of some
// other service on the port.
const garbage = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// workLoop carries out requests one after the other. serve starts it, and Server.Close waits for
// it. It ends when the reader has ended and the inbox is empty, or when the server or a request
// closes the connection.
func (c *conn) workLoop() {
	defer c.leave()
	for a := range c.inbox {
		if !c.work(a) {
			break
		}
	}
	for a := range c.inbox {
		a.injection.Cancel()
	}
}

// leave detaches the connection once its requests are done. A client that has gone
// keeps its watches that long, as its requests may set some.
func (c *conn) leave() {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	c.front.remove(c)
	c.dropInjection()
	if c.session == nil {
		return
	}
	for _, m := range c.front.pending[c.session.id] {
		if m.origin == c {
			m.injection.Cancel()
			m.injection = nil
		}
	}
}

func (c *conn) work(a arrival) bool {
	if !c.admit(&a) {
		a.injection.Cancel()
		return false
	}
	switch {
	case a.connect != nil:
		return c.handshake(a.connect)
	case c.refuses():
		return c.refuse(&a.req)
	case c.readsOnly():
		return c.serveReadOnly(&a.req)
	case a.req.op == proto.OpSync || isWrite(a.req.op) && c.server.config.knows(a.req.op):
		return c.serveByLeader(&a.req)
	}
	return c.serveHere(&a.req)
}

// admit waits for the request's turn and reports whether it is to be carried out. A
// fault rule for its reply is then kept in c.injection.
func (c *conn) admit(a *arrival) bool {
	if a.injection != nil && !a.injection.Action().OnReply() {
		if !c.applyRequestFault(a) {
			return false
		}
		a.injection = nil
	}
	s := c.server
	if !c.lockWhen(func() bool { return !c.front.frozen }) {
		return false
	}
	defer s.mu.Unlock()
	c.injection, a.injection = a.injection, nil
	if a.silent && c.session != nil {
		s.touch(c.session, c.front)
	}
	return true
}

// applyRequestFault does to a request what a fault rule says and reports whether the
// request is then to be carried out.
func (c *conn) applyRequestFault(a *arrival) bool {
	switch a.injection.Action() {
	case fault.CutBefore:
		c.kill()
		a.injection.Commit()
		return false
	case fault.Garbage:
		c.out.push(outgoing{frame: []byte(garbage), injection: a.injection, at: a.at})
		a.injection = nil
		<-c.alive.Done()
		return false
	}
	a.injection.Commit()
	return a.injection.Wait(c.alive, a.at) == nil
}

// lockWhen takes Server.mu as soon as ready, which needs it, says so. It reports
// false, without the lock, if the server cuts the connection first. That the client
// goes away doesn't end the wait: a server that hears no more from its leader
// passes on what it has been sent once it can.
func (c *conn) lockWhen(ready func() bool) bool { return c.lockUntil(c.cut, ready) }

// lockUntil is lockWhen that ends with ctx.
func (c *conn) lockUntil(ctx context.Context, ready func() bool) bool {
	s := c.server
	for {
		s.mu.Lock()
		if ctx.Err() != nil {
			s.mu.Unlock()
			return false
		}
		if ready() {
			return true
		}
		changed := c.front.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// handshake opens or resumes a session and reports whether the connection goes on.
func (c *conn) handshake(r *proto.ConnectRequest) bool {
	s := c.server
	if !c.lockWhen(func() bool { return true }) {
		return false
	}
	if old := c.front.attach[r.Session]; r.Session != 0 && old != nil {
		old.kill()
	}
	if c.front.readOnly != nil {
		defer s.mu.Unlock()
		return c.handshakeReadOnly(r)
	}
	ahead := r.Zxid > c.front.view().zxid
	s.mu.Unlock()
	if ahead {
		// The client knows more than this front end; it must find another.
		c.kill()
		return false
	}
	if r.Session == 0 {
		return c.lockWhen(c.front.proposes) && c.await(s.openSession(c, r))
	}
	if !c.lockWhen(c.front.receivesFromLeader) {
		return false
	}
	defer s.mu.Unlock()
	sess := c.front.sessions()[r.Session]
	if sess == nil || c.front.lapsed(sess) || !bytes.Equal(sess.password, r.Password) {
		c.reply(connectReply(r, nil, false))
		c.finish()
		return false
	}
	s.resumeSession(sess, s.negotiate(r.Timeout), c.front)
	c.session = sess
	c.front.attach[sess.id] = c
	c.reply(connectReply(r, sess, false))
	return true
}

// serveByLeader carries out what the leader decides on.
func (c *conn) serveByLeader(r *request) bool {
	ready := c.front.proposes
	if r.op == proto.OpSync {
		ready = c.front.receivesFromLeader
	}
	if !c.lockWhen(ready) {
		return false
	}
	if r.op == proto.OpSync && c.front.leads() {
		c.server.mu.Unlock()
		return c.serveHere(r)
	}
	defer c.server.mu.Unlock()
	c.expect(c.server.submit(c, r))
	return true
}

// expect notes what a request leads to, unless that has been answered. It needs Server.mu.
// Writes are sent on without waiting for the answers to those before, as to ZooKeeper's
// leader; everything else waits for them: see settled.
func (c *conn) expect(m *commit) {
	if id := c.session.id; !m.delivered {
		c.front.pending[id] = append(c.front.pending[id], m)
	}
}

// settled takes Server.mu once the front end has applied all that the session's requests
// have led to, by this connection and by earlier ones. It reports false, without the lock, if it
// never will for this connection.
func (c *conn) settled() bool {
	for {
		c.server.mu.Lock()
		var pending []*commit
		if c.session != nil {
			pending = c.front.pending[c.session.id]
		}
		if len(pending) == 0 {
			return true
		}
		if !c.await(pending[len(pending)-1]) {
			return false
		}
	}
}

// await unlocks Server.mu and returns when the front end has applied m, or never
// will for this connection, which it reports by false.
func (c *conn) await(m *commit) bool {
	if m.delivered {
		c.server.mu.Unlock()
		return true
	}
	if m.done == nil { // else an earlier connection of the session waits for it, too
		m.done = make(chan struct{})
	}
	done := m.done
	c.server.mu.Unlock()
	select {
	case <-done:
		return true
	case <-c.cut.Done():
		return false
	}
}

// serveHere carries out what the front end does by itself.
func (c *conn) serveHere(r *request) bool {
	if !c.settled() {
		return false
	}
	defer c.server.mu.Unlock()
	switch {
	case !c.server.config.knows(r.op):
		c.reply(errorReply(r.xid, c.front.view().zxid, proto.CodeUnimplemented))
		c.dropInjection()
		c.finish()
		return false
	case r.op == proto.OpAuth:
		return c.authenticate(r)
	}
	if c.front.leads() { // a follower answers without asking the leader
		if c.front.lapsed(c.session) {
			c.dropInjection()
			return true // without an answer
		}
		if !c.session.claim(c.front) {
			c.finish()
			return false
		}
	}
	c.reply(c.front.answerRead(c, r))
	return true
}

// authenticate adds an identity to the connection's. A secret that doesn't hold
// ends the connection.
func (c *conn) authenticate(r *request) bool {
	switch r.scheme {
	case "digest":
		id := digestID(string(r.data))
		if !slices.Contains(c.ids, id) {
			c.ids = append(c.ids, id)
		}
	case "ip":
	default:
		c.reply(errorReply(r.xid, 0, proto.CodeAuthFailed))
		c.finish()
		return false
	}
	c.reply(errorReply(r.xid, 0, proto.CodeOK))
	return true
}

// refuses reports whether a fault rule has the front end refuse the request by itself.
func (c *conn) refuses() bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.injection != nil && c.injection.Action() == fault.Refuse
}

// refuse answers a request that the leader doesn't see, behind the answers to those
// before, and reports whether the connection goes on.
func (c *conn) refuse(r *request) bool {
	if !c.settled() {
		return false
	}
	defer c.server.mu.Unlock()
	refusal := c.injection.Code()
	c.reply(errorReply(r.xid, refusal.Zxid(c.front.view().zxid), proto.Code(refusal)))
	if refusal.Closes() {
		c.finish()
	}
	return !refusal.Closes()
}
