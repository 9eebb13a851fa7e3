package tap

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A Conn is one connection of a Tap's session. The wire client reads from one goroutine; a goroutine of
// the Conn writes.
type Conn struct {
	net.Conn
	tap          *Tap
	deadline     time.Time    // of the handshake
	authenticate func() error // carries out SASL within the handshake; nil without SASL

	credentials []Credential // on trial or not; only for Read, once in use

	established atomic.Bool   // the handshake is complete
	received    atomic.Int64  // when the latest bytes arrived, since Tap.born; 0 for never
	frameTime   time.Duration // how long a frame may take; set before established

	// guarded by tap.mu
	inflight requestQueue // answered in this order, credentials apart
	pings    []time.Time
	refusal  error      // see Tap.Refusal
	out      []outFrame // that the writer has not taken yet
	over     bool       // it carries no more requests, and ended is closed

	wake    chan struct{} // capacity 1: out has frames
	ended   chan struct{} // closed with over
	written chan struct{} // closed when the writer has ended; nil before the handshake is complete
	greeted bool          // only for Write: the handshake has been written
	reader  frameReader   // only for Read
	sentAt  time.Time     // when the handshake was written; set before its reply can be read
	begins  bool          // the handshake asks for a new session; set with sentAt

	deadlines struct{ read, write limit } // only for the reader, and for the writer

	closing  sync.Once
	closed   chan struct{} // closed when the socket's Close has returned closeErr
	closeErr error
}

func newConn(t *Tap, conn net.Conn, deadline time.Time) *Conn {
	c := &Conn{
		Conn: conn, tap: t, deadline: deadline,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), closed: make(chan struct{}),
	}
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
		c.abandonRequests()
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

// Close closes the socket. Requests without an answer end with [ErrUnanswered]. The Close of TLS sends
// an alert, for which it takes up to five seconds, and a user's may block. So if the socket's Close
// takes long, it goes on in the background, and only the reader is ended.
func (c *Conn) Close() error {
	c.abandonRequests()
	c.closing.Do(func() {
		c.tap.closes(c)
		go func() { // ends with the socket's Close; Tap.AwaitClosed waits for it
			defer c.tap.isClosed(c)
			c.closeErr = c.Conn.Close()
			c.awaitWriter()
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

// Write sends one frame. A handshake is completed and written at once; later frames are written as a
// [Request] is.
//
// If the socket fails later, the wire client gets the failure from its reader. If Write failed, a
// request of the wire client would return a raw error of the network.
func (c *Conn) Write(p []byte) (int, error) {
	hello, queued := c.outgoing(p)
	if queued {
		return len(p), nil
	}
	if _, err := c.Conn.Write(hello); err != nil {
		c.tap.broke(c, err)
		return 0, err
	}
	return len(p), nil
}

// outgoing returns the frame to send for a handshake, and queues any other.
func (c *Conn) outgoing(p []byte) (hello []byte, queued bool) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if !c.greeted {
		c.greeted, c.sentAt = true, time.Now()
		c.begins = len(p) >= greetingID+8 && int64At(p, greetingID) == 0
		return completeGreeting(p, c.tap.config.ReadOnly, c.tap.Zxid()), false
	}
	f := outFrame{raw: bytes.Clone(p)}
	if len(p) >= proto.LengthSize+proto.RequestHeadSize && int(binary.BigEndian.Uint32(p)) == len(p)-proto.LengthSize {
		f.rq = &Request{xid: int32At(p, proto.LengthSize), Opcode: proto.Opcode(int32At(p, proto.LengthSize+4))}
		if f.rq.xid != proto.XidPing {
			c.inflight.add(f.rq)
		}
	}
	c.queueLocked(f)
	return nil, true
}

// An outFrame is a frame that is to be written.
type outFrame struct {
	rq    *Request // nil for bytes of the wire client that are no request
	raw   []byte   // the frame, if it is the wire client's; else nil
	watch bool     // the last byte of rq's body is to be 1
}

// append appends the frame to b.
func (f outFrame) append(b []byte) []byte {
	if f.raw != nil {
		return append(b, f.raw...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(proto.RequestHeadSize+len(f.rq.Body)))
	b = binary.BigEndian.AppendUint32(b, uint32(f.rq.xid))
	b = binary.BigEndian.AppendUint32(b, uint32(f.rq.Opcode))
	b = append(b, f.rq.Body...)
	if f.watch {
		b[len(b)-1] = 1
	}
	f.rq.Body = nil // nothing reads it any more
	return b
}

func (f outFrame) size() int {
	if f.raw != nil {
		return len(f.raw)
	}
	return proto.LengthSize + proto.RequestHeadSize + len(f.rq.Body)
}

// queueLocked has the writer write the frame. It needs mu.
func (c *Conn) queueLocked(f outFrame) {
	c.out = append(c.out, f)
	c.wakeWriter()
}

// maxWrite is how many bytes one write has at most, unless one frame has more. A write has one deadline.
const maxWrite = 16 << 10

// takeFrames returns all frames of out, which gets the memory of taken.
func (c *Conn) takeFrames(taken []outFrame) []outFrame {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	taken, c.out = c.out, taken[:0]
	return taken
}

// sendFrames returns how many of the frames are the next write. They count as sent from now on.
func (c *Conn) sendFrames(frames []outFrame) (n int) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	now, size := time.Now(), 0
	for i, f := range frames {
		if size += f.size(); size > maxWrite && i > 0 {
			return i
		}
		if f.rq == nil {
			continue
		}
		c.tap.clock.sent(now)
		if f.rq.sent = now; f.rq.xid == proto.XidPing {
			c.pings = append(c.pings, now)
		}
	}
	return len(frames)
}

// startWriter starts the writer, once the handshake is complete.
func (c *Conn) startWriter() {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if !c.over {
		c.written = make(chan struct{})
		go c.writeFrames() // ends with the connection; awaitWriter waits for it
	}
}

func (c *Conn) awaitWriter() {
	c.tap.mu.Lock()
	written := c.written
	c.tap.mu.Unlock()
	if written != nil {
		<-written
	}
}

func (c *Conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default: // the writer has not looked yet
	}
}

// writeFrames writes frames until the connection ends. A failed write ends the connection.
func (c *Conn) writeFrames() {
	err := c.writeUntilEnd()
	close(c.written)
	if err != nil {
		c.tap.broke(c, err)
		_ = c.Close() // err has the cause, and Read will return it
	}
}

// writeUntilEnd is writeFrames without the consequences of a failure.
func (c *Conn) writeUntilEnd() error {
	var taken []outFrame
	var buf []byte
	for {
		select {
		case <-c.wake:
		case <-c.ended:
			return nil
		}
		taken = c.takeFrames(taken)
		for rest := taken; len(rest) > 0; {
			n := c.sendFrames(rest)
			buf = buf[:0]
			for _, f := range rest[:n] {
				buf = f.append(buf)
			}
			if err := c.write(buf); err != nil {
				return err
			}
			clear(rest[:n])
			rest = rest[n:]
		}
		if cap(buf) > 2*maxWrite {
			buf = nil
		}
	}
}

// oldestUnansweredLocked is [Tap.OldestUnanswered]; it needs tap.mu.
func (c *Conn) oldestUnansweredLocked() (time.Time, bool) {
	oldest := c.inflight.oldest()
	if oldest != nil && oldest.sent.IsZero() {
		oldest = nil // it waits to be written, behind others
	}
	switch {
	case oldest == nil && len(c.pings) == 0:
		return time.Time{}, false
	case oldest == nil:
		return c.pings[0], true
	case len(c.pings) == 0 || oldest.sent.Before(c.pings[0]):
		return oldest.sent, true
	}
	return c.pings[0], true
}
