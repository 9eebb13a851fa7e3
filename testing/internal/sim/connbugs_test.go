package sim_test

import (
	"encoding/binary"
	"net"
)

// The bugs of this file are connections that change what passes.

// A flatterer doubles the session timeout in the answer to the handshake.
type flatterer struct {
	net.Conn
	passed int
}

func (c *flatterer) Read(p []byte) (int, error) {
	const at = 8 // behind the frame's length and the protocol's version
	n, err := c.Conn.Read(p)
	if from := at - c.passed; from >= 0 && from+4 <= n {
		told := p[from : from+4]
		binary.BigEndian.PutUint32(told, 2*binary.BigEndian.Uint32(told))
	}
	c.passed += n
	return n, err
}

// A silent connection loses the request that closes a session.
type silent struct{ net.Conn }

func (c *silent) Write(p []byte) (int, error) {
	const closeSession = -11
	if opcode(p) == closeSession {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// opcode returns the operation of a request's frame, 0 if it is none: the wire client writes a
// frame at once.
func opcode(p []byte) int32 {
	const at = 8 // behind the frame's length and the xid
	if len(p) < at+4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(p[at:]))
}

// A mute connection loses all that is sent once it has passed a number of bytes.
type mute struct {
	net.Conn
	sent int
}

func (c *mute) Write(p []byte) (int, error) {
	const most = 2000
	if c.sent += len(p); c.sent > most {
		return len(p), nil
	}
	return c.Conn.Write(p)
}
