package tap

import (
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A Conn is one connection of a Tap's session. The wire client writes from one
// goroutine at a time and reads from another, as net.Conn allows.
type Conn struct {
	net.Conn
	tap          *Tap
	deadline     time.Time    // of the handshake
	authenticate func() error // carries out SASL within the handshake; nil without SASL

	credentials []Credential // on trial or not; only for Read, once in use
	opcodes     *Opcodes     // immutable once in use; may be nil
	server      string       // immutable once in use

	established atomic.Bool   // the handshake is complete
	received    atomic.Int64  // when the latest bytes arrived, since Tap.born; 0 for never
	writeTime   time.Duration // how long a write may take; set before established

	// guarded by tap.mu
	inflight []request // answered in this order, credentials apart
	pings    []time.Time
	refusal  error // see Tap.Refusal

	over bool // it carries no more questions

	turn    chan struct{} // capacity 1: full while a goroutine writes
	greeted bool          // only for Write: the handshake has been written
	reader  frameReader   // only for Read
	sentAt  time.Time     // when the handshake was written; set before its reply can be read
	begins  bool          // the handshake asks for a new session; set with sentAt

	// Read is only for the reader; write needs the turn.
	deadlines struct{ read, write limit }

	closing  sync.Once
	closed   chan struct{} // closed when the socket's Close has returned closeErr
	closeErr error
}

func newConn(t *Tap, conn net.Conn, deadline time.Time) *Conn {
	c := &Conn{Conn: conn, tap: t, deadline: deadline, turn: make(chan struct{}, 1), closed: make(chan struct{})}
	c.reader = newFrameReader(c, conn)
	return c
}

// Read returns bytes of the frames that the server sent to the wire client. Each frame is complete,
// checked and recorded by then. If a frame is invalid, Read closes the socket and returns an error
// that wraps [ErrHandshake] or [ErrProtocol].
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.reader.read(p)
	if err != nil {
		c.tap.broke(c, err)
		if closedByServer(err) {
			c.opcodes.closed(c.server, c.oldestOpcode())
		}
		c.abandonQuestions()
	}
	return n, err
}

// refuse closes the socket because of what the server sent, and returns err.
func (c *Conn) refuse(err error) error {
	c.tap.broke(c, err)
	_ = c.Close() // the error that counts is err
	return err
}

// closePatience is how long Close waits for the socket's Close.
const closePatience = 5 * time.Millisecond

// Close closes the socket. Questions without an answer end with [ErrUnanswered]. The Close of TLS sends
// an alert, for which it takes up to five seconds, and a user's may block. So if the socket's Close
// takes long, it goes on in the background, and only the reader is ended.
func (c *Conn) Close() error {
	c.abandonQuestions()
	c.closing.Do(func() {
		c.tap.closes(c)
		go func() { // ends with the socket's Close; Tap.AwaitClosed waits for it
			defer c.tap.isClosed(c)
			c.closeErr = c.Conn.Close()
		}()
	})
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-c.closed:
		return c.closeErr
	case <-patience.C:
		go func() { _ = c.Conn.SetReadDeadline(time.Unix(1, 0)) }() // ends at once, unless the user's blocks
		return nil
	}
}

// Write sends one frame, and completes it if it asks for less than the session needs.
//
// If the socket fails, Write closes it and reports success. The wire client gets the failure from
// its reader, which fails every request in flight in the same way. If Write failed, a re-sent
// credential would block the wire client forever, and a request would return a raw error of the
// network.
func (c *Conn) Write(p []byte) (int, error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if err := c.write(c.outgoing(p)); err != nil {
		c.tap.broke(c, err)
		if !c.established.Load() {
			return 0, err
		}
		_ = c.Close() // err has the cause, and Read will return it
	}
	return len(p), nil
}

// outgoing records the frame p and returns the frame to send for it.
func (c *Conn) outgoing(p []byte) []byte {
	now := time.Now()
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if !c.greeted {
		c.greeted, c.sentAt = true, now
		c.begins = len(p) >= greetingID+8 && int64At(p, greetingID) == 0
		return completeGreeting(p, c.tap.config.ReadOnly, c.tap.Zxid())
	}
	if len(p) < proto.LengthSize+proto.RequestHeadSize || int(binary.BigEndian.Uint32(p)) != len(p)-proto.LengthSize {
		return p
	}
	xid, opcode := int32At(p, proto.LengthSize), proto.Opcode(int32At(p, proto.LengthSize+4))
	c.tap.clock.sent(now)
	if xid == proto.XidPing {
		c.pings = append(c.pings, now)
		return p
	}
	rq := request{xid: xid, opcode: opcode, sent: now}
	switch opcode {
	case proto.OpCreate:
		p = c.completeCreateLocked(p, &rq)
	case proto.OpCreateTTL:
		if path, _, ok := readString(p[proto.LengthSize+proto.RequestHeadSize:]); ok {
			rq.following = c.tap.sendsLocked(false, path)
		}
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren2:
		p = c.tap.completeReadLocked(p, opcode)
	case proto.OpMulti:
		c.tap.followTransactionLocked(p, &rq)
	}
	c.inflight = append(c.inflight, rq)
	return p
}

// oldestUnansweredLocked is [Tap.OldestUnanswered]; it needs tap.mu.
func (c *Conn) oldestUnansweredLocked() (time.Time, bool) {
	switch {
	case len(c.inflight) == 0 && len(c.pings) == 0:
		return time.Time{}, false
	case len(c.inflight) == 0:
		return c.pings[0], true
	case len(c.pings) == 0 || c.inflight[0].sent.Before(c.pings[0]):
		return c.inflight[0].sent, true
	}
	return c.pings[0], true
}
