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
// A client [WithReadOnly] goes from Connecting, Suspended and Lost to ReadOnly. From there it goes
// to Connected, or to Lost if its session ends. If the read-only connection ends, it goes back to
// Suspended, or to Connecting if it has no session.
type State int32

// The states of a client.
const (
	// Connecting is the state of a new client: there has been no session yet. A client
	// [WithReadOnly] is Connecting, too, when a read-only connection ended and it has no session.
	Connecting State = iota + 1
	// Connected means that the session has a connection.
	Connected
	// Suspended means that the connection broke, or that the client leaves its server for another one
	// ([Client.SetServers]). As far as the client knows, the session is still valid and its ephemeral
	// znodes still exist.
	Suspended
	// Lost means that the session is over, or may be over: its ephemeral znodes are deleted or will
	// be deleted. A new session follows, with Connected.
	Lost
	// Closed means that Close was called. It is the last state.
	Closed
	// AuthFailed means that a server refused a credential ([WithAuth], [WithSASL]), or requires one
	// that the client does not have. The client keeps trying. Until a server accepts the client,
	// every operation fails with [ErrAuthFailed] at once.
	AuthFailed
	// ReadOnly means that the client has only a connection to a server that has lost its quorum;
	// [WithReadOnly] allows that. The session, if there was one, is as in Suspended.
	ReadOnly
)

// String returns the state's name, as in "Connected".
func (s State) String() string {
	names := [...]string{"Connecting", "Connected", "Suspended", "Lost", "Closed", "AuthFailed", "ReadOnly"}
	if s < 1 || int(s) > len(names) {
		return fmt.Sprintf("State(%d)", int32(s))
	}
	return names[s-1]
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
	// From is the state before. It is zero for the first change that a listener gets, which reports
	// the present state.
	From State
	// To is the new state.
	To State
	// Session is the session that the change is about: the new session at Connected, the session
	// that ended at Lost. It is zero if there is none.
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
