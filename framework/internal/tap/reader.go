package tap

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A frameReader reads the server's frames one by one and returns those that the wire client may
// decode. The wire client trusts what it decodes: a count or a length that the frame contradicts
// would end the process. The frameReader does not return replies to the Tap's own requests.
type frameReader struct {
	conn   *Conn
	socket *bufio.Reader // one system call for a frame, or for many
	frame  []byte        // the present frame, with its length
	unread []byte        // the part of it that the wire client has not read
}

// maxKeptFrame is the largest buffer that is kept for the next frame.
const maxKeptFrame = 16 << 10

// growth bounds how much is allocated for a frame before its bytes arrive.
const growth = 256 << 10

func newFrameReader(c *Conn, socket net.Conn) frameReader {
	return frameReader{conn: c, socket: bufio.NewReader(arrivals{c, socket})}
}

// arrivals is the socket's reader. It records when bytes arrive.
type arrivals struct {
	conn   *Conn
	socket net.Conn
}

func (a arrivals) Read(p []byte) (int, error) {
	n, err := a.socket.Read(p)
	if n > 0 {
		a.conn.received.Store(int64(time.Since(a.conn.tap.born)))
	}
	return n, err
}

// read is Read without the consequences of a failure.
func (r *frameReader) read(p []byte) (int, error) {
	for len(r.unread) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// next reads, checks and records one frame.
func (r *frameReader) next() error {
	if cap(r.frame) > maxKeptFrame {
		r.frame = nil
	}
	r.frame = r.frame[:0]
	if err := r.fill(proto.LengthSize); err != nil {
		return err
	}
	length := int(int32At(r.frame, 0))
	if !r.conn.established.Load() {
		return r.nextGreeting(length)
	}
	return r.nextReply(length)
}

// nextGreeting is next for the reply to the handshake, which has length bytes.
func (r *frameReader) nextGreeting(length int) error {
	if length < 0 || length > MaxHandshake {
		return r.conn.refuse(fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, length))
	}
	if err := r.fill(length); err != nil {
		return err
	}
	if err := r.conn.greetedBy(r.frame[proto.LengthSize:]); err != nil {
		return r.conn.refuse(err)
	}
	r.unread = r.frame
	return nil
}

// nextReply is next for a frame after the handshake, which has length bytes.
func (r *frameReader) nextReply(length int) error {
	if length < proto.ReplyHeadSize {
		return r.conn.refuse(fmt.Errorf("%w: a frame of %d bytes", ErrProtocol, length))
	}
	if err := r.fill(proto.ReplyHeadSize); err != nil {
		return err
	}
	rq, limit := r.conn.requestOf(r.frame[proto.LengthSize:]), r.conn.tap.config.MaxReply
	if rq.question != nil {
		limit = proto.ReplyHeadSize + rq.question.limit
	}
	if length > limit {
		return r.cut(rq, length, limit)
	}
	if err := r.fill(length - proto.ReplyHeadSize); err != nil {
		return err
	}
	pass, err := r.conn.incoming(r.frame[proto.LengthSize:])
	if err != nil {
		return r.conn.refuse(err)
	}
	if pass {
		r.unread = r.frame
	}
	return nil
}

// cut skips the body of a reply to rq that is longer than the limit, without keeping it in memory.
// It returns a code in place of the body.
func (r *frameReader) cut(rq request, length, limit int) error {
	if rq.opcode == 0 {
		return r.conn.refuse(fmt.Errorf("%w: a frame of %d bytes, which exceeds %d", ErrProtocol, length, limit))
	}
	rp := replyOf(r.frame[proto.LengthSize:])
	r.conn.tap.saw(rp)
	rp.fault = fmt.Errorf("%w: %d bytes, and %d are allowed for", ErrTooLarge, length-proto.ReplyHeadSize, limit-proto.ReplyHeadSize)
	r.conn.replied(rp)
	if _, err := r.socket.Discard(length - proto.ReplyHeadSize); err != nil {
		return err
	}
	if rq.question == nil {
		r.unread = cutReply(r.frame, rq.opcode)
	}
	return nil
}

// fill appends the next n bytes of the stream to the frame.
func (r *frameReader) fill(n int) error {
	for n > 0 {
		piece, from := min(n, growth), len(r.frame)
		r.frame = slices.Grow(r.frame, piece)[:from+piece]
		if _, err := io.ReadFull(r.socket, r.frame[from:]); err != nil {
			return err
		}
		n -= piece
	}
	return nil
}

// Codes that the wire client reads in place of a reply that is longer than it accepts. No server
// sends them.
const (
	// CodeTooLarge is the code of a request that has no effect: a read.
	CodeTooLarge = -1000001
	// CodeCut is the code of a request that may have had its effect.
	CodeCut = -1000002
)

// cutReply makes a whole frame of the head of a reply to a request with the opcode. It keeps an
// error code of the server.
func cutReply(frame []byte, opcode proto.Opcode) []byte {
	binary.BigEndian.PutUint32(frame, proto.ReplyHeadSize)
	if code := frame[proto.LengthSize+proto.ReplyHeadSize-4:]; int32At(code, 0) == 0 {
		cut := int32(CodeCut)
		if readsOnly(opcode) {
			cut = CodeTooLarge
		}
		binary.BigEndian.PutUint32(code, uint32(cut))
	}
	return frame
}

func readsOnly(opcode proto.Opcode) bool {
	switch opcode {
	case proto.OpExists, proto.OpGetData, proto.OpGetACL, proto.OpGetChildren2, proto.OpSync:
		return true
	}
	return false
}
