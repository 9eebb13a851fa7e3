package wire

import (
	"net"
	"slices"
	"time"
)

// A Conn is one connection of a Wire's session, after its handshake. Two goroutines belong to it: read,
// whose end is the connection's end, and write.
type Conn struct {
	wire     *Wire
	socket   net.Conn
	patience time.Duration // without progress, until it ends: two intervals between go-zookeeper's pings

	// guarded by wire.mu
	queue   queue
	window  window
	flight  []*Request // those without a reply, in the order in which they were sent
	heard   time.Time  // when bytes arrived last; zero for never
	wrote   time.Time  // see noteWrote
	refusal error      // see Status

	event []byte // the body of the latest watch event; for read alone

	woken  chan struct{} // capacity 1: there may be something to write
	ending chan struct{} // closed, with wire.mu, when it carries no more requests
	ended  chan struct{} // closed when read has ended
}

// close ends the connection because of cause: requests without a reply end at once, and the goroutines
// soon. The Close of TLS sends an alert, for which it takes up to five seconds, and a user's may block:
// it goes on in the background.
func (c *Conn) close(cause error) {
	w := c.wire
	w.mu.Lock()
	if c.isEnding() {
		w.mu.Unlock()
		return
	}
	if w.conn == c && w.fault == nil {
		w.fault = cause
	}
	left := c.dropLocked(written)
	close(c.ending)
	w.work.Add(1)
	w.mu.Unlock()
	go func() { // ends with the socket's Close; Wire.Retire waits for it
		defer w.work.Done()
		_ = c.socket.SetReadDeadline(time.Unix(1, 0)) // read ends now, even if Close blocks
		_ = c.socket.Close()
	}()
	time.AfterFunc(closePatience, c.giveUp)
	endAll(left)
}

// closePatience is how long the write under way may take to say what the socket took, once the
// connection has ended. A socket's Close ends its writes, unless it is a user's that blocks.
const closePatience = 5 * time.Millisecond

// giveUp ends the requests whose write is still under way.
func (c *Conn) giveUp() {
	c.wire.mu.Lock()
	left := c.dropLocked(writing)
	c.wire.mu.Unlock()
	endAll(left)
}

// dropLocked returns the requests that will have no reply, for their end: those in the queue, and those in
// flight in one of the states. It needs mu.
func (c *Conn) dropLocked(states ...state) []*Request {
	left := c.queue.drain()
	for _, rq := range c.flight {
		if slices.Contains(states, rq.state) {
			left = append(left, rq)
		}
	}
	for _, rq := range left {
		rq.state = over
	}
	return left
}

// isEnding reports whether close was called. It takes no lock.
func (c *Conn) isEnding() bool {
	select {
	case <-c.ending:
		return true
	default:
		return false
	}
}

// wake makes write look for work.
func (c *Conn) wake() { signal(c.woken) }

// signal puts a signal into a channel of capacity 1.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // the former one was not taken yet
	}
}

// noteWrote records that bytes of a large frame have left. They are progress only while the oldest request without
// a reply is being written. After that only bytes that arrive are: for a stopped server, a socket takes many more.
func (c *Conn) noteWrote() {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if len(c.flight) > 0 && c.flight[0].state == writing {
		c.wrote = time.Now()
	}
}

// waitingLocked returns since when there is no progress for the oldest request without a reply; zero if none waits.
// It needs mu.
func (c *Conn) waitingLocked() time.Time {
	if c.isEnding() || len(c.flight) == 0 {
		return time.Time{}
	}
	return later(c.flight[0].sent, later(c.heard, c.wrote))
}

// note records that bytes have arrived, if heard, and returns until when the connection may be silent from now on.
// Bytes that leave extend that by half a patience only: a socket may take a large frame at once although the server
// stopped up to a ping earlier, and there must be time to find another server.
func (c *Conn) note(heard bool) (until time.Time) {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if heard {
		c.heard = time.Now()
	}
	return later(c.heard.Add(c.patience), c.wrote.Add(c.patience/2))
}
