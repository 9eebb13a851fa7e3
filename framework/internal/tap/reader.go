package tap

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"time"
)

// A frameReader reads the stream of frames from the server and hands on those
// that are the wire client's. It holds no more of a frame than it needs: a reply's head,
// a handshake's answer, the body of a create's reply that somebody waits for, and
// replies to the Tap's own requests, which it keeps back.
type frameReader struct {
	conn   *Conn
	socket *bufio.Reader // one call of the system for a frame, or for many
	held   []byte        // the latest frame that was held, its length included
	ready  []byte        // what is left of held to hand on
	pass   int           // bytes of the present frame to hand on unheld
	cut    error         // ErrTooLarge where the present frame's body was left out
}

// read hands on bytes of frames that are the wire client's.
func (r *frameReader) read(p []byte) (int, error) {
	for len(r.ready) == 0 && r.pass == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if len(r.ready) > 0 {
		n := copy(p, r.ready)
		r.ready = r.ready[n:]
		return n, nil
	}
	n, err := r.socket.Read(p[:min(len(p), r.pass)])
	r.pass -= n
	return n, err
}

// next takes note of the frame that comes next, once as much of it has arrived as
// is needed for that, and says what to hand on: all of it, or nothing.
func (r *frameReader) next() error {
	head, err := r.socket.Peek(lengthSize)
	if err != nil {
		return err
	}
	length := int(int32At(head, 0))
	switch {
	case length < 0:
		return r.conn.refuse(fmt.Errorf("%w: a frame of %d bytes", ErrHandshake, length))
	case r.conn.established.Load():
		return r.nextReply(length)
	case length > MaxHandshake:
		return r.conn.refuse(fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, length))
	}
	answer, err := r.hold(length)
	if err != nil {
		return err
	}
	if err := r.conn.greetedBy(answer); err != nil {
		return r.conn.refuse(err)
	}
	return nil
}

// nextReply is next for a frame of the length that follows the handshake.
func (r *frameReader) nextReply(length int) error {
	head, err := r.socket.Peek(lengthSize + min(length, replyHead))
	if err != nil {
		return err
	}
	reply := head[lengthSize:]
	if length < replyHead {
		r.pass = lengthSize + length
		return nil
	}
	rq := r.conn.requestOf(reply)
	switch {
	case rq.question != nil:
		return r.keepBack(rq.question, length)
	case rq.want != nil && int32At(reply, 12) == 0 && length > replyHead && length <= maxCreatedReply:
		if reply, err = r.hold(length); err != nil {
			return err
		}
	default:
		r.pass = lengthSize + length
	}
	r.conn.incoming(reply)
	return nil
}

// hold reads a whole frame of the length, to be handed on, and returns its body.
func (r *frameReader) hold(length int) ([]byte, error) {
	r.held = slices.Grow(r.held[:0], lengthSize+length)[:lengthSize+length]
	if _, err := io.ReadFull(r.socket, r.held); err != nil {
		return nil, err
	}
	r.ready = r.held
	return r.held[lengthSize:], nil
}

// keepBack reads a frame of the length that answers q, or what of it is allowed for.
func (r *frameReader) keepBack(q *question, length int) error {
	kept := length
	if length-replyHead > q.limit {
		kept = replyHead
	}
	frame := make([]byte, lengthSize+kept)
	if _, err := io.ReadFull(r.socket, frame); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, r.socket, int64(length-kept)); err != nil {
		return err
	}
	if kept < length {
		r.cut = fmt.Errorf("%w: %d bytes, and %d are allowed for", ErrTooLarge, length-replyHead, q.limit)
	}
	r.conn.incoming(frame[lengthSize:])
	r.cut = nil
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

// requestOf returns the request that the reply with the head answers, or none.
func (c *Conn) requestOf(head []byte) request {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if i := c.indexLocked(int32At(head, 0)); i >= 0 {
		return c.inflight[i]
	}
	return request{}
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
	if rq.question != nil {
		tell = func() { rq.question.end(Answer{zxid, code, body}, c.reader.cut) }
	}
	if code == errSessionExpired || code == errSessionMoved {
		return tell
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
	return tell
}
