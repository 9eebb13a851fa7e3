package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// growth bounds how much is allocated for a frame before its bytes arrive.
const growth = 256 << 10

// read reads frames until the connection ends: it ends requests, and delivers events. Its end is the
// connection's: OnDown follows, and then go-zookeeper learns of it.
func (c *Conn) read() {
	defer c.wire.work.Done()
	c.close(c.readFrames())
	c.wire.mu.Lock()
	clear(c.wire.trees) // they ended with their connection
	c.wire.mu.Unlock()
	if c.wire.config.OnDown != nil {
		c.wire.config.OnDown()
	}
	close(c.ended)
}

// Read reads from the socket. It waits for as long as the connection makes progress.
func (c *Conn) Read(p []byte) (int, error) {
	by := time.Now().Add(c.patience)
	for {
		_ = c.socket.SetReadDeadline(by) // a socket that takes none fails at the read, too
		if c.isEnding() {                // looked at behind the deadline, which may undo close's
			return 0, net.ErrClosed
		}
		n, err := c.socket.Read(p)
		if by = c.note(n > 0); n > 0 || err == nil || time.Until(by) <= 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

func (c *Conn) readFrames() error {
	input := bufio.NewReader(c)
	head := make([]byte, proto.LengthSize+proto.ReplyHeadSize)
	for {
		if _, err := io.ReadFull(input, head); err != nil {
			return err
		}
		n := int(int32(binary.BigEndian.Uint32(head))) - proto.ReplyHeadSize
		if n < 0 {
			return fmt.Errorf("%w: a frame of %d bytes", ErrProtocol, n+proto.ReplyHeadSize)
		}
		d := proto.NewDecoder(head[proto.LengthSize:])
		rh := d.ReplyHead()
		var err error
		if rh.Xid == proto.XidEvent {
			err = c.notify(input, n)
		} else {
			err = c.reply(input, rh, n)
		}
		if err != nil {
			return err
		}
	}
}

// readBody appends the next n bytes of the stream to b.
func readBody(input io.Reader, b []byte, n int) ([]byte, error) {
	for n > 0 {
		piece, from := min(n, growth), len(b)
		b = slices.Grow(b, piece)[:from+piece]
		if _, err := io.ReadFull(input, b[from:]); err != nil {
			return nil, err
		}
		n -= piece
	}
	return b, nil
}

// reply reads a reply with a body of n bytes. A body that is too long is skipped.
func (c *Conn) reply(input *bufio.Reader, head proto.ReplyHead, n int) error {
	c.wire.mu.Lock()
	i := slices.IndexFunc(c.flight, func(rq *Request) bool { return rq.xid == head.Xid })
	var rq *Request // the oldest, unless the server replies to a credential out of order
	if i >= 0 {
		rq = c.flight[i]
		c.window.expect(rq, proto.LengthSize+proto.ReplyHeadSize+n)
	}
	c.wire.mu.Unlock()
	if rq == nil {
		return fmt.Errorf("%w: a reply to request %d, which is not in flight", ErrProtocol, head.Xid)
	}
	if n > rq.Limit {
		c.replied(rq, head, nil, n, fmt.Errorf("%w: %d bytes, and %d are allowed for", ErrTooLarge, n, rq.Limit))
		_, err := input.Discard(n)
		return err
	}
	body, err := readBody(input, nil, n)
	if err != nil {
		return err
	}
	c.replied(rq, head, body, n, nil)
	return c.leftOut(rq.sent)
}

// replied records the reply to rq, whose body has n bytes, and ends rq.
func (c *Conn) replied(rq *Request, head proto.ReplyHead, body []byte, n int, fault error) {
	if c.record(rq, head, body, n) {
		rq.end(Answer{head.Zxid, head.Code, body}, fault)
	}
	c.wake() // the window may admit more
}

// record is replied without the end of rq. It returns false if rq has ended already.
func (c *Conn) record(rq *Request, head proto.ReplyHead, body []byte, n int) bool {
	w := c.wire
	longest := n // of one result, as far as is known
	if rq.Reads > 0 && body != nil {
		longest = longestRead(body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(c.flight, rq) // read alone removes requests
	c.flight = slices.Delete(c.flight, i, i+1)
	if head.Zxid > 0 { // a request that the server sheds has none. One wrong id must not hide all later ones
		w.zxid = head.Zxid
	}
	c.window.leave(rq, proto.LengthSize+proto.ReplyHeadSize+n, time.Now())
	if rq.Opcode != proto.OpPing && (rq.Reads == 0 || head.Code == proto.CodeOK) { // else it has no results
		w.sizes.learn(rq.kind(), longest, n, max(1, rq.Reads))
	}
	first := rq.state != over
	rq.state = over
	if head.Code != proto.CodeOK && rq.tree != "" {
		delete(w.trees, rq.tree)
	}
	if head.Code == proto.CodeAuthRequired {
		c.refusal = ErrCredential
		return first
	}
	if rq.Opcode == proto.OpAuth && head.Code != proto.CodeOK {
		c.refusal = ErrTrial // on trial: the handshake presents the others
	}
	isContact := rq.Opcode != proto.OpAuth // a reply to it does not touch the session
	w.clock.answered(rq.sent, isContact, !w.about.readOnly && proves(rq.Opcode, head, body))
	w.settleLocked()
	return first
}

// longestRead returns the length of the longest result in the reply to a multiRead, errors apart.
func longestRead(results []byte) (longest int) {
	d := proto.NewDecoder(results)
	for {
		op, done, _ := d.OpHead()
		from := len(d.Rest())
		switch {
		case done || d.Err() != nil:
			return longest
		case op == proto.OpError:
			d.Int32()
			continue
		case op == proto.OpGetData:
			d.Bytes()
			d.Stat()
		case op == proto.OpGetChildren:
			for range d.Count(proto.LengthSize) {
				d.Text()
			}
		default:
			d.Fail()
		}
		longest = max(longest, from-len(d.Rest()))
	}
}

// leftOut is called after the reply to a request that was sent at that time. It returns an error if the
// server has not replied to an earlier request that is older than the session timeout. A server replies
// in order, so it will never reply. The session timeout is more time than any server needs, should one
// reply out of order. Without this, such a request would be in flight for as long as the server replies
// to others.
func (c *Conn) leftOut(sent time.Time) error {
	w := c.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(c.flight) == 0 || !c.flight[0].sent.Before(sent) || time.Since(c.flight[0].sent) < w.about.timeout {
		return nil
	}
	return fmt.Errorf("%w: no reply to a request for %v, and one to a later request", ErrProtocol, w.about.timeout)
}

// Kinds of watch events about a znode: created, deleted, data and children changed. Other kinds are
// about the session, and mean nothing here.
const (
	firstEvent = 1
	lastEvent  = 4
)

// notify reads a watch event with a body of n bytes, and delivers it if it is about a znode.
func (c *Conn) notify(input io.Reader, n int) error {
	if n > c.wire.config.MaxReply {
		return fmt.Errorf("%w: a frame with %d bytes", ErrProtocol, n)
	}
	var err error
	if c.event, err = readBody(input, c.event[:0], n); err != nil {
		return err
	}
	d := proto.NewDecoder(c.event)
	kind := d.Int32()
	d.Int32() // the state of the connection
	path := d.Text()
	switch {
	case d.Err() != nil:
		return fmt.Errorf("%w: a watch event of %d bytes", ErrProtocol, n)
	case kind < firstEvent || kind > lastEvent:
	case !isPath(path):
		return fmt.Errorf("%w: a watch event of the path %.40q", ErrProtocol, path)
	case c.isEnding():
		return net.ErrClosed
	case c.wire.config.OnEvent != nil:
		c.wire.config.OnEvent(kind, string(path))
	}
	return nil
}

// isPath reports whether b is "/", or a slash before each of its elements, none of which is empty.
// Whoever walks along a path of a server may rely on that.
func isPath(b []byte) bool {
	return len(b) > 0 && b[0] == '/' && (len(b) == 1 || b[len(b)-1] != '/') && !bytes.Contains(b, []byte("//"))
}
