package zkserver

import (
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
)

// writeLoop writes what is queued, in order. It is started by serve, ends when the
// connection is closed or its last frame written, and Server.Close waits for it.
func (c *conn) writeLoop() {
	defer c.hangUp()
	var pending []outgoing
	defer func() {
		for _, item := range pending {
			item.injection.Cancel()
		}
		c.out.close()
	}()
	for {
		select {
		case <-c.out.ready:
		case <-c.alive.Done():
			return
		}
		pending = c.out.take()
		for len(pending) > 0 {
			taken, ok := c.writeSome(pending)
			pending = pending[taken:]
			if !ok {
				return
			}
		}
	}
}

// writeSome writes frames up to the first that a fault rule has claimed, or that one
// alone. It returns how many it has dealt with and whether the connection goes on.
func (c *conn) writeSome(items []outgoing) (taken int, ok bool) {
	if items[0].injection != nil {
		return 1, c.writeFaulty(items[0])
	}
	var buf []byte
	for taken < len(items) && items[taken].injection == nil {
		if items[taken].last {
			return taken + 1, c.write(buf) && false
		}
		if buf == nil {
			buf = slices.Clip(items[taken].frame) // others may share it
		} else {
			buf = append(buf, items[taken].frame...)
		}
		taken++
	}
	return taken, c.write(buf)
}

// write writes to the client, once the front end isn't frozen.
func (c *conn) write(buf []byte) bool {
	_, whole := c.writeFrom(buf)
	return whole
}

// writeFrom is write, and tells how much the client has taken where it went away.
func (c *conn) writeFrom(buf []byte) (n int, whole bool) {
	if len(buf) == 0 {
		return 0, true
	}
	if !c.lockUntil(c.alive, func() bool { return !c.front.frozen }) {
		return 0, false
	}
	c.server.mu.Unlock()
	n, err := c.net.Write(buf)
	return n, err == nil
}

// writeFaulty does to a frame what a fault rule says.
func (c *conn) writeFaulty(item outgoing) bool {
	injection := item.injection
	switch injection.Action() {
	case fault.CutBefore, fault.DropReply:
		c.kill()
		injection.Commit()
		return false
	case fault.DropEvent:
		injection.Commit()
		return true
	case fault.HalfAnswer:
		half := len(item.frame) / 2
		return c.writeOdd(injection, item.frame[:half]) &&
			injection.Wait(c.alive, item.at) == nil && c.write(item.frame[half:])
	case fault.OtherSession:
		return c.writeOdd(injection, withOtherSession(item.frame))
	case fault.Garbage:
		return c.writeOdd(injection, item.frame)
	}
	injection.Commit()
	return injection.Wait(c.alive, item.at) == nil && c.write(item.frame)
}

// writeOdd writes what comes instead of an answer. A client that went away while it
// read that has been struck; one that read nothing of it has not.
func (c *conn) writeOdd(injection *fault.Injection, frame []byte) bool {
	n, whole := c.writeFrom(frame)
	if n > 0 {
		injection.Commit()
	} else {
		injection.Cancel()
	}
	return whole
}

// withOtherSession returns a handshake's answer with another session id in it.
func withOtherSession(frame []byte) []byte {
	d := proto.NewDecoder(frame[proto.LengthSize:])
	answer := d.ConnectReply()
	answer.Session = fault.OtherID(answer.Session)
	return answer.Frame()
}

// An outgoing is a frame on its way to the client.
type outgoing struct {
	frame     []byte
	injection *fault.Injection // its fault, nil for none
	at        time.Time        // when it was queued
	last      bool             // close the connection here
}

// An outbox is the queue of what a connection has to write. It has no bound: a
// server that waited for a slow client would keep others waiting.
type outbox struct {
	ready chan struct{} // has one element if there may be frames

	mu     sync.Mutex
	queue  []outgoing
	closed bool
}

func newOutbox() *outbox { return &outbox{ready: make(chan struct{}, 1)} }

// push queues a frame. Once the outbox is closed it is lost.
func (o *outbox) push(item outgoing) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		item.injection.Cancel()
		return
	}
	o.queue = append(o.queue, item)
	o.mu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take returns everything that has been pushed since.
func (o *outbox) take() []outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.queue
	o.queue = nil
	return queue
}

// close loses what is queued, and what will be.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	queue := o.queue
	o.queue = nil
	o.mu.Unlock()
	for _, item := range queue {
		item.injection.Cancel()
	}
}
