package tap

import (
	"fmt"
	"time"
)

// MaxHandshake is the length in bytes that an answer to a handshake may have.
// A real one has 36 or 37; what is longer comes from something else that
// listens on the port, and would be allocated by the wire client as announced.
const MaxHandshake = 1024

// MinTimeout is the shortest session timeout that a server may grant. The wire client pings
// three times within it, and panics if it is not positive.
const MinTimeout = 10 * time.Millisecond

// greetedBy takes the answer to the handshake: protocol version, timeout in
// milliseconds, session id, password; since 3.4 a read-only flag follows.
func (c *Conn) greetedBy(answer []byte) error {
	if len(answer) < greetingHead+lengthSize {
		return fmt.Errorf("%w: an answer of %d bytes", ErrHandshake, len(answer))
	}
	password, _, ok := readString(answer[greetingHead:])
	if !ok {
		return fmt.Errorf("%w: its password is cut short", ErrHandshake)
	}
	c.tap.mu.Lock()
	sent, isNew := c.sentAt, c.begins
	c.tap.mu.Unlock()
	if sent.IsZero() {
		return fmt.Errorf("%w: an answer before the question", ErrHandshake)
	}
	id := int64At(answer, 8)
	timeout := time.Duration(int32At(answer, 4)) * time.Millisecond
	switch {
	case id == 0: // the session has expired: the rest means nothing
	case timeout < MinTimeout:
		return fmt.Errorf("%w: it grants a session timeout of %v", ErrHandshake, timeout)
	case len(password) != passwordSize:
		return fmt.Errorf("%w: its password has %d bytes", ErrHandshake, len(password))
	}
	if id != 0 { // a server that says that the session has expired hears no more
		if err := c.authenticate(); err != nil {
			return err
		}
	}
	err := c.tap.handshake(sent, isNew, id, timeout, append([]byte(nil), password...))
	if err == nil && id != 0 {
		err = c.presentAll()
	}
	if err == nil {
		c.established.Store(true)
	}
	return err
}
