package tap

import (
	"fmt"
	"slices"
	"time"
)

// A frameReader follows the stream of frames from the server, in whatever
// pieces it arrives. It holds no more of a frame than it needs: a reply's head,
// a handshake's answer, and the body of a create's reply that somebody waits for.
type frameReader struct {
	conn *Conn
	held []byte // the start of the present frame: its length, then what is kept
	keep int    // how much of the frame to hold, its length included
	skip int    // bytes of the frame that still pass by unheld
}

// feed takes the bytes that arrived next.
func (r *frameReader) feed(p []byte) error {
	for len(p) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(p))
			r.skip -= n
			p = p[n:]
			continue
		}
		if r.keep == 0 {
			r.keep = lengthSize
		}
		n := min(r.keep-len(r.held), len(p))
		r.held = append(r.held, p[:n]...)
		p = p[n:]
		if len(r.held) < r.keep {
			return nil
		}
		if err := r.advance(); err != nil {
			return err
		}
	}
	return nil
}

// advance is called when all that was to be held has arrived, and either asks
// for more of the frame or takes note of it.
func (r *frameReader) advance() error {
	length := int(int32At(r.held, 0))
	established := r.conn.established.Load()
	switch {
	case r.keep == lengthSize && length < 0:
		return fmt.Errorf("%w: a frame of %d bytes", ErrHandshake, length)
	case r.keep == lengthSize && !established:
		if length > MaxHandshake {
			return fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, length)
		}
		r.keep += length
	case r.keep == lengthSize:
		r.keep += min(length, replyHead)
	case established && r.keep == lengthSize+replyHead && length > replyHead && length <= maxCreatedReply && r.conn.wantsBody(r.held[lengthSize:]):
		r.keep = lengthSize + length
	}
	if len(r.held) < r.keep {
		return nil
	}
	frame := r.held[lengthSize:]
	r.skip = length - len(frame)
	r.held, r.keep = r.held[:0], 0
	if !established {
		return r.conn.greetedBy(frame)
	}
	if len(frame) >= replyHead {
		r.conn.incoming(frame)
	}
	return nil
}

// greetedBy takes the answer to the handshake: protocol version, timeout in
// milliseconds, session id, password; since 3.4 a read-only flag follows.
func (c *Conn) greetedBy(answer []byte) error {
	if len(answer) < 16+lengthSize {
		return fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, len(answer))
	}
	password, _, ok := readString(answer[16:])
	if !ok {
		return fmt.Errorf("%w: its password is cut short", ErrHandshake)
	}
	c.tap.mu.Lock()
	sent := c.sentAt
	c.tap.mu.Unlock()
	if sent.IsZero() {
		return fmt.Errorf("%w: an answer before the question", ErrHandshake)
	}
	c.established.Store(true)
	timeout := time.Duration(int32At(answer, 4)) * time.Millisecond
	return c.tap.handshake(sent, int64At(answer, 8), timeout, append([]byte(nil), password...))
}

// wantsBody reports whether the rest of the reply that begins with head is
// wanted: a create went well and somebody waits for its Stat.
func (c *Conn) wantsBody(head []byte) bool {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	i := c.indexLocked(int32At(head, 0))
	return i >= 0 && c.inflight[i].want != nil && int32At(head, 12) == 0
}

// indexLocked returns which request in flight has the xid, or -1. It is the
// oldest, but for the server's habit of answering credentials out of turn.
func (c *Conn) indexLocked(xid int32) int {
	return slices.IndexFunc(c.inflight, func(rq request) bool { return rq.xid == xid })
}

// incoming takes note of a reply, or as much of it as was held.
func (c *Conn) incoming(frame []byte) {
	if xid := int32At(frame, 0); xid == xidPing {
		c.pong()
	} else if tell := c.replied(xid, int64At(frame, 4), int32At(frame, 12), frame[replyHead:]); tell != nil {
		tell()
	}
}

func (c *Conn) pong() {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if len(c.pings) > 0 {
		c.tap.clock.answered(c.pings[0], false)
		c.pings = c.pings[:copy(c.pings, c.pings[1:])]
	}
}

// replied takes note of the reply to a request, if it is one, and returns what is to
// be called for it without the lock, or nil. zxid is the number that the ensemble
// gave a write. body is empty where it was not held.
func (c *Conn) replied(xid int32, zxid int64, code int32, body []byte) (tell func()) {
	t := c.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	i := c.indexLocked(xid)
	if i < 0 { // a watch event, or a reply to nothing
		return nil
	}
	rq := c.inflight[i]
	if i == 0 {
		c.inflight = c.inflight[1:] // append moves what is left, once in a while
	} else {
		c.inflight = slices.Delete(c.inflight, i, i+1)
	}
	if code == errSessionExpired || code == errSessionMoved {
		return nil
	}
	t.clock.answered(rq.sent, throughLeader(rq.opcode))
	t.settleLocked()
	switch {
	case rq.opcode == opSetAuth:
		if code == 0 {
			c.accepted++
		} else {
			c.refused = true
		}
		return t.onAuth
	case rq.want != nil:
		path, st, ok := parseCreated(body)
		if !ok {
			break
		}
		t.created[path] = st
		if arrived := rq.want.arrived; arrived != nil {
			return func() { arrived(path, st) }
		}
	case rq.transaction != "":
		t.created[rq.transaction] = Stat{Czxid: zxid}
	}
	return nil
}
