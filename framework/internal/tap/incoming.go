package tap

import (
	"bytes"
	"fmt"
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
		return false, c.event(rp.body)
	case proto.XidPing:
		return true, c.pong(rp.code)
	}
	rq := c.requestOf(frame)
	switch {
	case rq == nil || rq.sent.IsZero():
		return false, fmt.Errorf("%w: a reply to request %d, which is not in flight", ErrProtocol, rp.xid)
	case rp.code == 0:
		err = checkBody(rq.Opcode, rp.body)
	}
	if err == nil {
		c.replied(rq, rp)
		err = c.leftOut(rq.sent)
	}
	return rq.done == nil, err
}

// event delivers a watch event.
func (c *Conn) event(body []byte) error {
	kind, path, err := parseEvent(body)
	if path != "" && c.tap.config.OnEvent != nil {
		c.tap.config.OnEvent(kind, path)
	}
	return err
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

// requestOf returns the request in flight to which the reply with the head belongs, or nil. It is the
// oldest request, unless the server replies to a credential out of order.
func (c *Conn) requestOf(head []byte) *Request {
	xid := int32At(head, 0)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	for _, rq := range c.inflight.all() {
		if rq.xid == xid {
			return rq
		}
	}
	return nil
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
// reply out of order. Without this, such a request would be in flight for as long as the server replies
// to others.
func (c *Conn) leftOut(sent time.Time) error {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	oldest := c.inflight.oldest()
	if oldest == nil || oldest.sent.IsZero() || !oldest.sent.Before(sent) || time.Since(oldest.sent) < c.tap.timeout {
		return nil
	}
	return fmt.Errorf("%w: no reply to a request for %v, and one to a later request", ErrProtocol, c.tap.timeout)
}

// replied records the reply to rq, and ends rq.
func (c *Conn) replied(rq *Request, rp reply) {
	if c.record(rq, rp) && rq.done != nil {
		rq.end(Answer{rp.zxid, rp.code, bytes.Clone(rp.body)}, rp.fault)
	}
}

// record is replied without the end of rq. It returns false if the connection's end has ended rq.
func (c *Conn) record(rq *Request, rp reply) bool {
	t := c.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.inflight.remove(rq) {
		return false
	}
	if rp.code != 0 && rq.tree != "" {
		delete(t.trees, rq.tree)
	}
	if rp.code == proto.CodeAuthRequired {
		c.refusal = ErrCredential
		return true
	}
	if rq.Opcode == proto.OpAuth && rp.code != 0 {
		c.refusal = ErrTrial // the Tap's own, so on trial: UseCredentials presents the others
	}
	isContact := rq.Opcode != proto.OpAuth // a reply to it does not touch the session
	t.clock.answered(rq.sent, isContact, !t.readOnly && proves(rq.Opcode, rp))
	t.settleLocked()
	return true
}
