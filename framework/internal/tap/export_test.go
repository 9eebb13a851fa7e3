package tap

// MaxHeld is the most that a connection holds of a frame.
const MaxHeld = lengthSize + maxCreatedReply

// Contacts returns how many contacts the lease clock keeps.
func Contacts(t *Tap) int { return len(t.clock.contacts) }

// Held returns how many bytes of the present frame a connection holds.
func Held(c *Conn) int { return cap(c.reader.held) }

// Outgoing returns what is sent for a frame.
func Outgoing(c *Conn, p []byte) []byte { return c.outgoing(p) }

// Pose sends a question whose answer may have limit bytes, and that nobody waits for.
func Pose(c *Conn, opcode int32, limit int) {
	c.pose(&question{limit: limit, ended: make(chan struct{})}, opcode, nil)
}
