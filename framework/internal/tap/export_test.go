package tap

import (
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// Growth is the most that a connection allocates for a frame beyond what has arrived.
const Growth = growth

// Contacts returns how many contacts the lease clock keeps.
func Contacts(t *Tap) int { return len(t.clock.contacts) }

// Held returns how many bytes a connection has for the present frame.
func Held(c *Conn) int { return cap(c.reader.frame) }

// Outgoing returns what is sent for a frame.
func Outgoing(c *Conn, p []byte) []byte {
	hello, queued := c.outgoing(p)
	if !queued {
		return hello
	}
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	var sent []byte
	for _, f := range c.out {
		sent = f.append(sent)
	}
	c.out = nil
	return sent
}

// InFlight records a request as sent that no caller waits for, and whose answer may have limit bytes.
func InFlight(c *Conn, opcode proto.Opcode, limit int) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.inflight.add(&Request{Opcode: opcode, Limit: limit, xid: firstXid, sent: time.Now(), done: make(chan struct{})})
}
