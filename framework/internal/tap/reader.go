package tap

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A frameReader reads the server's frames one by one, checks them, and returns those that are the wire
// client's: handshakes, and replies to pings and to the close of the session.
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

// lengthHTTP is what an HTTP server's answer begins with, read as a length.
const lengthHTTP = 'H'<<24 | 'T'<<16 | 'T'<<8 | 'P'

// nextGreeting is next for the reply to the handshake, which has length bytes.
func (r *frameReader) nextGreeting(length int) error {
	if length == lengthHTTP {
		return r.conn.refuse(fmt.Errorf("%w: an HTTP server answers", ErrHandshake))
	}
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
	if rq != nil && rq.done != nil {
		limit = proto.ReplyHeadSize + rq.Limit
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
		return nil
	}
	// The wire client sets a deadline for a frame that it reads, and this one it does not see. A socket
	// that takes no deadline fails at the next read, too.
	_ = r.conn.SetReadDeadline(time.Now().Add(r.conn.frameTime))
	return nil
}

// cut skips the body of a reply to rq that is longer than the limit, without keeping it in memory. The
// wire client itself makes no request with a long reply.
func (r *frameReader) cut(rq *Request, length, limit int) error {
	if rq == nil || rq.done == nil {
		return r.conn.refuse(fmt.Errorf("%w: a frame of %d bytes, which exceeds %d", ErrProtocol, length, limit))
	}
	rp := replyOf(r.frame[proto.LengthSize:])
	r.conn.tap.saw(rp)
	rp.fault = fmt.Errorf("%w: %d bytes, and %d are allowed for", ErrTooLarge, length-proto.ReplyHeadSize, limit-proto.ReplyHeadSize)
	r.conn.replied(rq, rp)
	_, err := r.socket.Discard(length - proto.ReplyHeadSize)
	return err
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
