package zkproxy

import "time"

// A Session is what the server has told a client in the answer to its handshake.
// With ID and Password anybody can resume the session, and so take it over or
// close it: a test can end a session of a client that keeps its password to
// itself.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // as the server has granted it
}
