package wire

import (
	"io"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// piece is how many bytes are written at once of a frame that has more than a write has else: progress shows
// behind each.
const piece = 64 << 10

// write writes requests until the connection ends. A failed write ends the connection.
func (c *Conn) write() {
	defer c.wire.work.Done()
	var batch []*Request
	var buf []byte
	for {
		if batch = c.take(batch[:0]); len(batch) == 0 {
			select {
			case <-c.woken:
				continue
			case <-c.ending:
				return
			}
		}
		buf = buf[:0]
		for _, rq := range batch {
			buf = rq.appendTo(buf)
			rq.Body = nil // nothing reads it any more
		}
		n, err := c.writeAll(buf)
		if err != nil {
			c.close(err)
		}
		endAll(c.recordWritten(batch, n))
		clear(batch)
		if cap(buf) > 2*maxWrite {
			buf = nil
		}
	}
}

// replyShare is how many bytes a small reply has, and what a socket needs for it.
const replyShare = 128

// take takes the next requests from the queue, which count as sent from now on.
func (c *Conn) take(batch []*Request) []*Request {
	w := c.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	now, size := time.Now(), 0
	for most := c.window.write(); size < most && !c.isEnding(); {
		rq := c.queue.next(&c.window, now)
		if rq == nil {
			break
		}
		w.followTreeLocked(rq)
		rq.state, rq.sent = writing, now
		size += rq.size + replyShare
		batch = append(batch, rq)
		w.clock.sent(now)
		if rq.xid = proto.XidPing; rq.Opcode != proto.OpPing {
			rq.xid = w.nextXidLocked()
		}
		c.window.enter(rq, now)
		c.flight = append(c.flight, rq)
	}
	return batch
}

// writeAll writes frames, and returns how many of their bytes the socket took.
func (c *Conn) writeAll(frames []byte) (n int, err error) {
	for n < len(frames) {
		_ = c.socket.SetWriteDeadline(time.Now().Add(c.patience)) // a socket that takes none fails at the write, too
		m, err := c.socket.Write(frames[n:min(n+piece, len(frames))])
		if n += m; n >= piece { // a socket takes small frames, too, for a server that has stopped
			c.noteWrote()
		}
		if m == 0 && err == nil { // a user's socket: the next write would take nothing, either
			err = io.ErrNoProgress
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// recordWritten records that the socket has n bytes of the batch. If the connection has ended, it returns the
// requests for their end. What the socket does not have as a whole has no effect.
func (c *Conn) recordWritten(batch []*Request, n int) (left []*Request) {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	for _, rq := range batch {
		if n -= rq.size; rq.state != writing {
			continue // it has its reply
		}
		if rq.state = written; !c.isEnding() {
			continue
		}
		if n < 0 {
			rq.sent = time.Time{}
		}
		rq.state = over
		left = append(left, rq)
	}
	return left
}
