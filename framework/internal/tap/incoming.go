package tap

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// incoming checks and records a frame without its length, which has at least a head. pass reports
// whether the wire client is to read the frame, too.
func (c *Conn) incoming(frame []byte) (pass bool, err error) {
	rp := replyOf(frame)
	c.tap.saw(rp)
	switch rp.xid {
	case proto.XidEvent:
		return checkEvent(rp.body)
	case proto.XidPing:
		return true, c.pong(rp.code)
	}
	rq := c.requestOf(frame)
	switch {
	case rq.opcode == 0:
		return false, fmt.Errorf("%w: a reply to request %d, which is not in flight", ErrProtocol, rp.xid)
	case rp.code == CodeTooLarge, rp.code == CodeCut:
		return false, fmt.Errorf("%w: a reply with the code %d", ErrProtocol, rp.code)
	case rp.code == 0:
		err = checkBody(rq.opcode, rp.body)
	}
	if err == nil {
		c.replied(rp)
		err = c.leftOut(rq.sent)
	}
	return rq.question == nil, err
}

// saw records the transaction id of a reply. An event has no valid id up to ZooKeeper 3.8, and a
// request that the server sheds has none. The latest counts, not the highest: one wrong id must not
// hide all later ones.
func (t *Tap) saw(rp reply) {
	if rp.xid != proto.XidEvent && rp.zxid > 0 {
		t.zxid.Store(rp.zxid)
	}
}

// Zxid returns the transaction id of the latest reply in the session: what its server had applied by
// then. It is 0 before the first reply.
func (t *Tap) Zxid() int64 { return t.zxid.Load() }

// requestOf returns the request to which the reply with the head belongs. If there is none, the
// request's opcode is 0.
func (c *Conn) requestOf(head []byte) request { return c.requestWith(int32At(head, 0)) }

// requestWith returns the request in flight with the xid, or one without an opcode.
func (c *Conn) requestWith(xid int32) request {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if i := c.indexLocked(xid); i >= 0 {
		return c.inflight[i]
	}
	return request{}
}

// indexLocked returns the index of the request in flight with the xid, or -1. It is the oldest
// request, unless the server replies to a credential out of order.
func (c *Conn) indexLocked(xid int32) int {
	return slices.IndexFunc(c.inflight, func(rq request) bool { return rq.xid == xid })
}

// pong records the reply to a ping, and returns leftOut's error.
func (c *Conn) pong(code proto.Code) error {
	c.tap.mu.Lock()
	if code == proto.CodeAuthRequired {
		c.refusal = ErrCredential
	}
	var sent time.Time
	if len(c.pings) > 0 {
		sent = c.pings[0]
		c.tap.clock.answered(sent, true, false)
		c.pings = c.pings[:copy(c.pings, c.pings[1:])]
	}
	c.tap.mu.Unlock()
	return c.leftOut(sent)
}

// leftOut is called after the reply to a request that was sent at that time. It returns an error if the
// server has not replied to an earlier request that is older than the session timeout. A server replies
// in order, so it will never reply. The session timeout is more time than any server needs, should one
// reply out of order. Without this, each such request would keep a goroutine for as long as the server
// replies to others.
func (c *Conn) leftOut(sent time.Time) error {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if len(c.inflight) == 0 || !c.inflight[0].sent.Before(sent) || time.Since(c.inflight[0].sent) < c.tap.timeout {
		return nil
	}
	return fmt.Errorf("%w: no reply to a request for %v, and one to a later request", ErrProtocol, c.tap.timeout)
}

// replied records the reply to a request in flight, and notifies its waiter.
func (c *Conn) replied(rp reply) {
	if rq := c.requestWith(rp.xid); rq.opcode != 0 {
		c.opcodes.replied(c.server, rq.opcode, rp.code)
	}
	if tell := c.note(rp); tell != nil {
		tell()
	}
}

// note is replied without the notification. It returns the function that notifies, which must be
// called without the lock; the function may be nil.
func (c *Conn) note(rp reply) (tell func()) {
	t := c.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	i := c.indexLocked(rp.xid)
	if i < 0 {
		return nil
	}
	rq := c.inflight[i]
	if i == 0 {
		c.inflight = c.inflight[1:] // append moves the rest, now and then
	} else {
		c.inflight = slices.Delete(c.inflight, i, i+1)
	}
	if rq.question != nil {
		if rp.code != 0 {
			delete(t.trees, rq.question.tree)
		}
		tell = func() { rq.question.end(Answer{rp.zxid, rp.code, bytes.Clone(rp.body)}, rp.fault) }
	}
	if rp.code == proto.CodeAuthRequired {
		c.refusal = ErrCredential
		return tell
	}
	if rq.opcode == proto.OpAuth && rp.code != 0 {
		c.refusal = ErrTrial // the Tap's own, so on trial: UseCredentials presents the others
	}
	isContact := rq.opcode != proto.OpAuth // a reply to it does not touch the session
	t.clock.answered(rq.sent, isContact, !t.readOnly && proves(rq.opcode, rp))
	t.settleLocked()
	rq.following.repliedLocked(rp)
	return tell
}
