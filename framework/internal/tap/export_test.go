package tap

// MaxHeld is the most that a connection holds of a frame.
const MaxHeld = lengthSize + maxCreatedReply

// Contacts returns how many contacts the lease clock keeps.
func Contacts(t *Tap) int { return len(t.clock.contacts) }

// Held returns how many bytes of the present frame a connection holds.
func Held(c *Conn) int { return cap(c.reader.held) }

// Feed passes bytes from a server by, as Read does.
func Feed(c *Conn, p []byte) error { return c.reader.feed(p) }

// Outgoing returns what is sent for a frame.
func Outgoing(c *Conn, p []byte) []byte { return c.outgoing(p) }
