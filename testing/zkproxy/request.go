package zkproxy

import (
	"time"

	"github.com/docent-go/docent/testing/fault"
)

// A Request is a request or a handshake that a client has sent through the proxy. Its
// Session is 0 as long as the server has not answered the handshake of a new one.
type Request struct {
	fault.Frame
	// At is when the proxy had received it.
	At time.Time
}
