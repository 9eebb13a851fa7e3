package framework

import (
	"fmt"
	"strings"
	"time"
)

// A State is what a client knows of its connection and its session.
//
//	Connecting ──> Connected <──> Suspended
//	                 ^  │            │
//	                 │  v            v
//	                 └─ Lost <───────┘        AuthFailed: from any state but Closed
//	                                          Closed: from any state, for good
//
// A client [WithReadOnly] goes from Connecting, Suspended and Lost to ReadOnly, and from there to
// Connected, to Lost if its session ends, and back to Suspended, or Connecting if it has no session.
type State int32

// The states of a client.
const (
	// Connecting is the state of a new client: there has been no session yet. A client
	// [WithReadOnly] is Connecting, too, when a read-only connection ended and it has no session.
	Connecting State = iota + 1
	// Connected means that the session has a connection.
	Connected
	// Suspended means that the connection broke. The session stands, as far as
	// can be known; with it stand its ephemeral znodes, for now.
	Suspended
	// Lost means that the session is over, or has to be taken for over: its
	// ephemeral znodes are gone or will go. A new session follows, with Connected.
	Lost
	// Closed means that Close was called. It is the last state.
	Closed
	// AuthFailed means that a server refused a credential ([WithAuth], [WithSASL]), or
	// requires one that the client does not have. Until a server accepts the client,
	// which goes on to try, every operation fails with [ErrAuthFailed] at once.
	AuthFailed
	// ReadOnly means that the client has only a connection to a server that has lost its quorum:
	// see [WithReadOnly]. The session, if there was one, is as in Suspended.
	ReadOnly
)

// String returns the state's name, as in "Connected".
func (s State) String() string {
	switch s {
	case Connecting:
		return "Connecting"
	case Connected:
		return "Connected"
	case Suspended:
		return "Suspended"
	case Lost:
		return "Lost"
	case Closed:
		return "Closed"
	case AuthFailed:
		return "AuthFailed"
	case ReadOnly:
		return "ReadOnly"
	}
	return fmt.Sprintf("State(%d)", int32(s))
}

// key returns the state as attributes have it, as in "auth_failed".
func (s State) key() string {
	switch s {
	case AuthFailed:
		return "auth_failed"
	case ReadOnly:
		return "read_only"
	}
	return strings.ToLower(s.String())
}

// A StateChange is a transition of a client's state.
type StateChange struct {
	// From is the state before; zero for the first change that a listener
	// gets, which tells it the present state.
	From State
	// To is the state since.
	To State
	// Session is the session that the change is about: the new one at
	// Connected, the one that ended at Lost. Zero where there is none.
	Session int64
	// Cause says why a connection broke or a session ended; nil otherwise.
	Cause error
	// At is when it happened, by the local clock.
	At time.Time
}

// String returns the change in one line, for logs.
func (c StateChange) String() string {
	if c.Cause != nil {
		return fmt.Sprintf("%v -> %v (session %#x): %v", c.From, c.To, c.Session, c.Cause)
	}
	return fmt.Sprintf("%v -> %v (session %#x)", c.From, c.To, c.Session)
}
