package zkproxy

import "time"

// A Session is the server's answer to a client's handshake. With ID and Password any client can
// resume the session, and so take it over or close it. A test can thus end a session of a client
// that keeps its password to itself.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // as the server has granted it
}
