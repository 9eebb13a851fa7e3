package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/wire"
)

// A Session is one ZooKeeper session. Only its loop, [Session.Run], changes its state. The methods
// may be called concurrently.
type Session struct {
	cfg      Config
	wire     *wire.Wire
	watches  *watchreg.Registry
	leaving  atomic.Bool     // the connection is being closed for another server
	client   context.Context // ends when the client is closed
	ctx      context.Context // ends with the session; has its cause
	cancel   context.CancelCauseFunc
	poke     chan struct{} // capacity 1: something below changed
	first    chan struct{} // capacity 1: who has put something in asks for the first reply
	allLost  chan struct{} // closed by lose when all leases have been lost
	notified chan struct{} // closed when the user's functions have returned
	lost     []*Hold       // with the session; set by lose, read once allLost is closed
	holds    holdSet

	timeoutChecked bool // only for Run

	mu sync.Mutex // guards following; never held across a request or a callback
	connState
	sent sentRequests
}

// A connState is a session's connection. It is guarded by Session.mu.
type connState struct {
	changes     []connChange
	up          time.Time               // when the wire got its connection, zero if it has none
	serving     bool                    // that connection serves
	probed      bool                    // the server has answered the probe on this connection
	target      hosts.Target            // of the latest connection
	leave       context.CancelCauseFunc // ends the attempt to connect that is under way
	heartbeatAt time.Time               // when the latest heartbeat of this connection was sent

	departure departure
}

// A connChange is a change of the wire's connection, with the connection's state at that moment. Soon
// after, the next connection replaces it.
type connChange struct {
	up    bool
	fault error // why it has ended, or could not be made; zkerr.ErrAuthFailed if a credential was refused
}

// sentRequests are the session's own requests that are under way.
type sentRequests struct {
	heartbeat, probe, touch bool
	tree                    bool // a recursive watch is being set or removed
}

// ID returns the session's number at the ensemble; 0 before the first connection, and for nil.
func (s *Session) ID() int64 {
	if s == nil {
		return 0
	}
	return s.wire.ID()
}

// Timeout returns the negotiated session timeout; 0 before the first connection.
func (s *Session) Timeout() time.Duration { return s.wire.Timeout() }

// Secret returns what it takes to resume, and so to end, the session.
func (s *Session) Secret() (id int64, password []byte) { return s.wire.Secret() }

// Zxid returns the transaction id of the latest reply; 0 before the first.
func (s *Session) Zxid() int64 { return s.wire.Zxid() }

// Deadline returns the moment until which the session is certainly valid.
func (s *Session) Deadline() time.Time { return s.wire.Status().Deadline }

// Context returns a context that ends with the session, before its holds have been notified. Its
// cause is the reason.
func (s *Session) Context() context.Context { return s.ctx }

// Wire returns what carries the session.
func (s *Session) Wire() *wire.Wire { return s.wire }

// Watches returns the session's watches.
func (s *Session) Watches() *watchreg.Registry { return s.watches }

// Wake makes the loop look for work.
func (s *Session) Wake() {
	select {
	case s.poke <- struct{}{}:
	default: // the loop has not looked yet, and will see this change too
	}
}

// ServerAddr returns the server of the latest connection, as "host:port".
func (s *Session) ServerAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.target.Server
}

// Target returns the target of the latest connection.
func (s *Session) Target() hosts.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.target
}
