// Package tap is between the wire client and its sockets.
//
// The wire client connects, makes the handshake and pings. It does not report the negotiated session
// timeout, or when a server answered. A [Tap] reads that in the frames.
//
// The Tap has the client's requests and events. The wire client would block a goroutine for each
// request, would send a request on a later connection, and would keep watches that a client can't
// remove. A request of a Tap is sent on the connection in use or not at all, in the order of the
// calls, so a caller can send several before it waits for the first reply.
//
// A Tap also corrects how the wire client handles sockets. The handshake has one deadline and a
// length limit. A failed write closes the socket, and the reader returns the failure. The client
// can close a socket from outside.
//
// One Tap serves one session: all connections that carry it, one after another.
//
// The frame layout is ZooKeeper's jute encoding, as in zookeeper.jute of Apache ZooKeeper 3.5 and
// later. A frame has a 4-byte length. Then a request has xid and opcode, and a reply has xid, zxid
// and error, all big-endian.
package tap

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Errors that end a connection or a session. The wire client gets them from Read, and the session's
// owner from [Tap.Ended].
var (
	ErrExpired     = errors.New("session expired")
	ErrSubstituted = errors.New("server answered with another session")
	ErrHandshake   = errors.New("not a ZooKeeper handshake")
	ErrProtocol    = errors.New("not a frame of the ZooKeeper protocol")
	// ErrNoLocalSession is returned if a server of ZooKeeper 3.7 or later refuses a local session.
	ErrNoLocalSession = errors.New("read-only server begins no session (localSessionsEnabled is off)")
)

// A Tap follows one session through all the connections that carry it.
// Its methods may be called concurrently.
type Tap struct {
	config Config    // immutable
	born   time.Time // immutable

	certain atomic.Int64 // the deadline, since born; written under mu
	zxid    atomic.Int64 // see Zxid

	mu       sync.Mutex // guards following; never held across I/O or a callback
	id       int64
	password []byte
	timeout  time.Duration
	clock    leaseClock
	conn     *Conn // the connection in use, if any
	fault    error // what broke the latest connection
	ended    error
	readOnly bool                // the server of the latest connection has no quorum
	asked    int32               // the xid of the latest Request
	trees    map[string]struct{} // paths with a recursive watch on conn
	closing  map[*Conn]struct{}  // whose sockets are being closed
}

// A Config is what a new Tap has to know.
type Config struct {
	// MarginFor returns the safety margin of the lease clock for a negotiated session timeout.
	MarginFor func(timeout time.Duration) time.Duration
	// MaxReply is the length in bytes of the longest frame that answers no [Request].
	MaxReply int
	// ReadOnly asks for a session at a server that has lost its quorum. No reply of such a server
	// is a proof.
	ReadOnly bool
	// OnEvent is called with each watch event about a znode, in the connection's order: before a later
	// reply ends its request. The kinds are the protocol's, from 1 to 4. It must not block. It may be nil.
	OnEvent func(kind int32, path string)
	// OnHandshake is called without a lock when a handshake has been recorded: the deadline may be
	// earlier than before. It must not block. It may be nil.
	OnHandshake func()
}

// New returns a Tap for a session that does not exist yet.
func New(cfg Config) *Tap {
	return &Tap{
		config:  cfg,
		born:    time.Now(),
		trees:   make(map[string]struct{}),
		closing: make(map[*Conn]struct{}),
	}
}

// Wrap returns conn with the Tap on it. The handshake has to be complete by deadline. Wrap closes
// the earlier connection, because the wire client does not close it after an expiry.
func (t *Tap) Wrap(conn net.Conn, deadline time.Time) (*Conn, error) {
	_ = conn.SetDeadline(deadline) // a closed socket fails at the handshake, too
	c := newConn(t, conn, deadline)
	t.mu.Lock()
	previous, ended := t.conn, t.ended
	if ended == nil {
		t.conn, t.fault = c, nil
		clear(t.trees)
	}
	t.mu.Unlock()
	if previous != nil {
		_ = previous.Close() // the wire client does not use it any more
	}
	if ended != nil {
		return nil, errors.Join(ended, conn.Close())
	}
	return c, nil
}

// Session returns the session's id, password and timeout, all zero before the first handshake. The
// timeout is the shortest that its handshakes negotiated.
func (t *Tap) Session() (id int64, password []byte, timeout time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id, t.password, t.timeout
}

// ReadOnly reports whether the server of the latest connection has lost its quorum.
func (t *Tap) ReadOnly() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readOnly
}

// Ended returns why the session is over, or nil. The cause is [ErrExpired], [ErrSubstituted] or the
// argument of [Tap.End].
func (t *Tap) Ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// End declares the session over: no connection will carry it any more. The connection in use
// remains, so that the session can still be closed in order.
func (t *Tap) End(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended = cause
	}
}

// Deadline returns until when the session is certainly valid at the ensemble.
func (t *Tap) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.deadline()
}

// InTime reports whether the deadline is in the future. It takes no lock.
func (t *Tap) InTime() bool { return time.Since(t.born) < time.Duration(t.certain.Load()) }

// settleLocked stores the deadline in certain, which is read without a lock. It needs mu.
func (t *Tap) settleLocked() {
	if deadline := t.clock.deadline(); !deadline.IsZero() {
		t.certain.Store(int64(deadline.Sub(t.born)))
	}
}

// Presumed returns until when the session may be presumed valid, by the replies of any server. It
// is no proof; [Tap.Deadline] needs proofs.
func (t *Tap) Presumed() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.presumed()
}

// Proven returns when the request of the latest proof was sent, zero if there is none on the
// present connection. The handshake of a new session is a proof.
func (t *Tap) Proven() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.proven
}

// Sent returns when the latest request was sent.
func (t *Tap) Sent() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.latest
}

// OldestUnanswered returns when the oldest request without a reply on the present connection was
// sent.
func (t *Tap) OldestUnanswered() (sent time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return time.Time{}, false
	}
	return t.conn.oldestUnansweredLocked()
}

// Received returns when the latest bytes arrived on the present connection, zero if none did. They
// show that the connection is alive, and prove nothing about the session.
func (t *Tap) Received() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil || t.conn.received.Load() == 0 {
		return time.Time{}
	}
	return t.born.Add(time.Duration(t.conn.received.Load()))
}

// Refusal returns [ErrCredential] or [ErrTrial] if the server has refused a credential on the
// connection in use, or a request that requires one; else nil.
func (t *Tap) Refusal() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return nil
	}
	return t.conn.refusal
}

// Fault returns what broke the latest connection, or nil.
func (t *Tap) Fault() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault
}

// broke keeps the first error of c, if c is the latest connection.
func (t *Tap) broke(c *Conn, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == c && t.fault == nil {
		t.fault = err
	}
}

// CloseConn closes the socket in use, if there is one. The wire client then reconnects, or ends.
// cause is what [Tap.Fault] returns from then on, unless the connection broke before.
func (t *Tap) CloseConn(cause error) {
	t.mu.Lock()
	c := t.conn
	if t.fault == nil {
		t.fault = cause
	}
	t.mu.Unlock()
	if c != nil {
		_ = c.Close() // the reader returns the same error
	}
}

// closes records that c's socket is being closed.
func (t *Tap) closes(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing[c] = struct{}{}
}

// isClosed records that c's socket is closed.
func (t *Tap) isClosed(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.closing, c)
	close(c.closed)
}

// AwaitClosed waits until the sockets that are being closed are closed.
func (t *Tap) AwaitClosed() {
	t.mu.Lock()
	closing := slices.Collect(maps.Keys(t.closing))
	t.mu.Unlock()
	for _, c := range closing {
		<-c.closed
	}
}

// handshake records an answered handshake that was sent at sent. isNew says whether it asked for a
// new session.
func (t *Tap) handshake(sent time.Time, isNew bool, g greeting) error {
	err := t.record(sent, isNew, g)
	if t.config.OnHandshake != nil {
		t.config.OnHandshake()
	}
	return err
}

// record is handshake without the notification.
func (t *Tap) record(sent time.Time, isNew bool, g greeting) error {
	id, timeout := g.id, g.timeout
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended != nil:
		return t.ended
	case id == 0:
		t.ended = ErrExpired
		return nil // the wire client is to read it too
	case t.id != 0 && t.id != id:
		t.ended = fmt.Errorf("%w: %#x instead of %#x", ErrSubstituted, id, t.id)
		return t.ended
	}
	if t.timeout > 0 { // a new leader uses the timeout that the session began with
		timeout = min(timeout, t.timeout)
	}
	t.id, t.timeout, t.password, t.readOnly = id, timeout, g.password, g.readOnly
	t.clock.handshake(sent, isNew && !g.readOnly, timeout, t.config.MarginFor(timeout))
	t.settleLocked()
	return nil
}
