package framework

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/retry"
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

// OnStateWithCircuitBreaker registers fn as [Client.OnState] does, for a connection that may flap. The first
// change away from Connected is passed on and opens the circuit. While the circuit is open, fn gets
// only one Lost, and Closed.
//
// After each wait of the policy, the circuit closes if the client was Connected during all of it.
// The circuit also closes if the policy allows no further wait. Then fn gets the present state,
// unless that is the state that fn got last. From is always the state that fn got before.
//
// remove ends the calls as OnState's remove does. If the policy is invalid, or fn is nil,
// OnStateWithCircuitBreaker returns an error and registers nothing. Curator's listener of this kind is
// CircuitBreakingConnectionStateListener.
func (c *Client) OnStateWithCircuitBreaker(policy retry.Policy, fn func(StateChange)) (remove func(), err error) {
	err = retry.Validate(policy)
	if fn == nil {
		err = errors.Join(err, errors.New("state listener: must not be nil"))
	}
	if err != nil {
		return nil, fmt.Errorf("framework: on state with circuit breaker: %w", err)
	}
	b := &breaker{policy: policy, out: listeners.NewQueued[StateChange](c.core.listenerPanicked)}
	removeOut := b.out.Add(fn)
	removeIn := c.OnState(b.take)
	return func() {
		removeIn()
		b.stop()
		removeOut()
	}, nil
}

// A breaker filters the client's states for one listener.
type breaker struct {
	policy retry.Policy
	out    *listeners.Queued[StateChange] // calls the listener

	mu     sync.Mutex // guards following; never held across a callback
	got    State      // the state that the listener got last
	now    StateChange
	open   bool
	calm   bool // no change during the present wait
	waits  backoff.BackOff
	timer  *time.Timer
	closed bool
}

// take is called for each change of the client, in order.
func (b *breaker) take(change StateChange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.now, b.calm = change, false
	switch {
	case change.To == Closed:
		b.closeLocked()
		b.notifyLocked()
		b.closed = true
	case !b.open:
		b.notifyLocked()
		if change.To != Connecting && change.To != Connected { // it can't reach an ensemble, or may not
			b.open, b.waits = true, b.policy.NewBackOff()
			b.waitLocked()
		}
	case change.To == Lost && b.got != Lost:
		b.notifyLocked()
	}
}

// waitLocked begins the next wait, or closes the circuit if there is none.
func (b *breaker) waitLocked() {
	wait := b.waits.NextBackOff()
	if wait < 0 {
		b.closeLocked()
		return
	}
	b.calm = true
	b.timer = time.AfterFunc(wait, b.waited)
}

// waited runs on the timer's goroutine and does not block.
func (b *breaker) waited() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.open:
		return
	case b.now.To == Connected && b.calm:
		b.closeLocked()
	default:
		b.waitLocked()
	}
	if !b.open && b.now.To != b.got {
		b.notifyLocked()
	}
}

func (b *breaker) closeLocked() {
	b.open = false
	if b.timer != nil {
		b.timer.Stop()
	}
}

func (b *breaker) notifyLocked() {
	change := b.now
	change.From = b.got
	b.got = change.To
	b.out.Notify(change)
}

func (b *breaker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeLocked()
	b.closed = true
}
