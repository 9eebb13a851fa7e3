// Package wire is a session's connection to its servers: one connection after another.
//
// docent makes each connection as a whole: handshake, SASL, credentials. A [Conn] then has a goroutine
// that reads and one that writes. Requests wait in a queue by class until the [window] admits them.
// go-zookeeper decides when to dial, to ping and to close; it gets a [facade] of the connection.
//
// The frame layout is ZooKeeper's jute encoding, as in zookeeper.jute of Apache ZooKeeper 3.5 and
// later. A frame has a 4-byte length. Then a request has xid and opcode, and a reply has xid, zxid
// and error, all big-endian.
package wire

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Errors that end a connection or a session.
var (
	ErrExpired     = errors.New("session expired")
	ErrSubstituted = errors.New("server answered with another session")
	ErrHandshake   = errors.New("not a ZooKeeper handshake")
	ErrProtocol    = errors.New("not a frame of the ZooKeeper protocol")
	// ErrNoLocalSession is returned if a server of ZooKeeper 3.7 or later refuses a local session.
	ErrNoLocalSession = errors.New("read-only server begins no session (localSessionsEnabled is off)")
)

// A Wire carries one session, by one connection after another. Its methods may be called concurrently.
type Wire struct {
	config  Config       // immutable
	created time.Time    // immutable
	dialler dialler      // go-zookeeper
	certain atomic.Int64 // the deadline, since created; written under mu
	work    sync.WaitGroup

	mu    sync.Mutex // guards following, and Conns; never held across I/O or a callback
	about identity
	clock leaseClock
	conn  *Conn // the connection in use, or the latest; nil before the first
	fault error // what broke the latest connection
	ended error
	xid   int32               // of the latest request
	zxid  int64               // see Zxid
	trees map[string]struct{} // paths with a recursive watch on conn
	sizes sizes
}

// An identity is what a handshake says about the session. What a Wire has of it is of the latest one.
type identity struct {
	id       int64 // 0 if the session has expired: then the rest has no meaning
	password []byte
	timeout  time.Duration // of a Wire, the shortest that was negotiated
	readOnly bool          // the server has lost its quorum
}

// A Config is what a new Wire has to know.
type Config struct {
	Timeout time.Duration // of the session, to ask for
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
	// OnHandshake is called when a handshake has been recorded: the deadline may be earlier than
	// before. It must not block. It may be nil, as the following may.
	OnHandshake func()
	// OnUp is called when a connection can carry requests, and OnDown when that connection has ended:
	// before the next attempt to connect. They must not block.
	OnUp, OnDown func()
}

// New returns a Wire for a session that does not exist yet. Nothing dials before [Wire.Start].
func New(cfg Config) *Wire {
	return &Wire{
		config:  cfg,
		created: time.Now(),
		sizes:   unknownSizes(),
		trees:   make(map[string]struct{}),
	}
}

// A Status is the state of a Wire and its connection at one instant.
type Status struct {
	ID       int64         // of the session; 0 before the first handshake, as Timeout is
	Timeout  time.Duration // the shortest that its handshakes negotiated
	ReadOnly bool          // the server of the latest connection has lost its quorum
	Ended    error         // why the session is over: [ErrExpired], [ErrSubstituted], or what [Wire.End] took

	Deadline time.Time // until then the session is certainly valid at the ensemble
	// Presumed is until when the session may be presumed valid, by the requests that any server answered. It
	// is no proof, and never becomes earlier while the session timeout doesn't.
	Presumed time.Time
	// Heard is when bytes arrived last on the connection in use, zero for never and for no connection. A server
	// that sends replies has the session, however old the requests are that it replies to, and would end the
	// connection with the session. Once the connection has ended, this means nothing, because bytes may have
	// been on their way for long.
	Heard  time.Time
	Proven time.Time // when the request of the latest proof on this connection was sent; zero for none
	Sent   time.Time // when the latest request was sent

	Open    bool  // there is a connection for requests
	Refusal error // ErrCredential or ErrTrial, if the server has refused a credential on this connection
	Fault   error // what broke the latest connection

	// Waiting is since when the connection has made no progress while the oldest request waits for its
	// reply; zero if none waits. Due is how long what is in flight takes by the connection's speed, if it is
	// more than little.
	Waiting time.Time
	Due     time.Duration
}

// Status returns the present state.
func (w *Wire) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{
		ID: w.about.id, Timeout: w.about.timeout, ReadOnly: w.about.readOnly, Ended: w.ended,
		Deadline: w.clock.deadline(), Presumed: w.clock.presumed(), Proven: w.clock.proven, Sent: w.clock.latest,
		Fault: w.fault,
	}
	if c := w.openLocked(Ordinary); c != nil {
		s.Open, s.Heard = true, c.heard
	}
	if c := w.conn; c != nil {
		s.Refusal = c.refusal
		if c.window.up.bytes+c.window.down.bytes > minWindow {
			s.Due = c.window.due()
		}
		s.Waiting = c.waitingLocked()
	}
	return s
}

// ID returns what the Status has, as do Timeout and Open. Each operation asks for them: a whole Status in many
// of its frames would double a waiter's stack.
func (w *Wire) ID() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.about.id
}

// Timeout is documented with ID.
func (w *Wire) Timeout() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.about.timeout
}

// Open is documented with ID.
func (w *Wire) Open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.openLocked(Ordinary) != nil
}

// Secret returns what it takes to resume, and so to end, the session.
func (w *Wire) Secret() (id int64, password []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.about.id, w.about.password
}

// InTime reports whether the deadline is in the future. It takes no lock.
func (w *Wire) InTime() bool { return time.Since(w.created) < time.Duration(w.certain.Load()) }

// settleLocked stores the deadline in certain, which is read without a lock. It needs mu.
func (w *Wire) settleLocked() {
	if deadline := w.clock.deadline(); !deadline.IsZero() {
		w.certain.Store(int64(deadline.Sub(w.created)))
	}
}

// Zxid returns the transaction id of the latest reply in the session: what its server had applied by
// then. It is 0 before the first reply.
func (w *Wire) Zxid() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.zxid
}

// End declares the session over: no connection will carry it any more. The connection in use remains, so
// that the session can still be closed in order, and carries pings until then, but nothing else: all requests end.
func (w *Wire) End(cause error) {
	w.mu.Lock()
	if w.ended == nil {
		w.ended = cause
	}
	var left []*Request
	if w.conn != nil {
		left = w.conn.dropLocked(writing, written)
	}
	w.mu.Unlock()
	endAll(left)
}

// CloseConn ends the connection in use, if there is one. go-zookeeper then dials again. cause is the
// Status's Fault from then on, unless the connection broke before.
func (w *Wire) CloseConn(cause error) {
	w.mu.Lock()
	c := w.conn
	w.mu.Unlock()
	if c != nil {
		c.close(cause)
	}
}

// openLocked returns the connection for requests of the class, or nil. A session that is over can still be closed.
// It needs mu.
func (w *Wire) openLocked(class Class) *Conn {
	c := w.conn
	if c == nil || c.isEnding() || class != Closing && (c.refusal != nil || w.ended != nil) {
		return nil
	}
	return c
}

// nextXidLocked returns the number of the next request. It needs mu.
func (w *Wire) nextXidLocked() int32 {
	if w.xid--; w.xid > firstXid || w.xid == math.MinInt32 {
		w.xid = firstXid
	}
	return w.xid
}
