package tap

import "github.com/docent-go/docent/internal/proto"

// Growth is the most that a connection allocates for a frame beyond what has arrived.
const Growth = growth

// Contacts returns how many contacts the lease clock keeps.
func Contacts(t *Tap) int { return len(t.clock.contacts) }

// Held returns how many bytes a connection has for the present frame.
func Held(c *Conn) int { return cap(c.reader.frame) }

// Outgoing returns what is sent for a frame.
func Outgoing(c *Conn, p []byte) []byte { return c.outgoing(p) }

// Pose sends a question whose answer may have limit bytes, and that no caller waits for.
func Pose(c *Conn, opcode proto.Opcode, limit int) {
	c.pose(&question{limit: limit, ended: make(chan struct{})}, opcode, nil)
}
