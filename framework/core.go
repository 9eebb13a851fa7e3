package framework

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/listeners"
)

// A core is what all views of one client share: its state, and the sessions
// that follow one another.
type core struct {
	cfg       config // immutable
	log       *zap.Logger
	listeners *listeners.Queued[StateChange]
	deletes   *deletes
	telemetry *telemetry
	ctx       context.Context // ends at Close
	cancel    context.CancelCauseFunc
	wg        sync.WaitGroup // every goroutine of the client but the listeners'
	closing   sync.Once
	closed    chan struct{} // closed when Close has done its work
	closeErr  error         // set before closed is closed

	mu        sync.Mutex // guards following; never held across a request or a callback
	state     State
	session   *session      // the latest that was connected; nil before the first
	running   *session      // the latest that was begun
	changed   chan struct{} // closed and replaced at each transition
	up        chan struct{} // closed and replaced at each transition to Connected; closed at Closed
	lastFault error         // why there is no connection
	servers   []string      // host:port
	refusing  bool          // Close has begun: no new goroutines
	shared    map[any]any
}

// transition changes the state and tells the listeners. The only callers are
// the client's loop and, for Closed, Close when that loop has ended.
func (c *core) transition(to State, s *session, cause error) {
	c.mu.Lock()
	change := StateChange{From: c.state, To: to, Session: s.idOrZero(), Cause: cause, At: time.Now()}
	if c.state == to {
		c.mu.Unlock()
		return
	}
	c.state = to
	switch to {
	case Connected:
		c.session = s
		close(c.up)
		c.up = make(chan struct{})
	case Closed:
		close(c.up) // for good: an operation that pauses before a retry ends now
	}
	c.lastFault = cause
	close(c.changed)
	c.changed = make(chan struct{})
	c.listeners.Notify(change) // under mu, so that listeners see the order of the states
	c.mu.Unlock()
	c.telemetry.changed(c.ctx, change)
	c.logChange(change, s.heldAtEnd())
}

func (s *session) idOrZero() int64 {
	if s == nil {
		return 0
	}
	return s.id()
}

func (c *core) logChange(change StateChange, held int) {
	fields := []zap.Field{
		zap.String(AttrConnectionState, change.To.key()),
		zap.String(AttrSessionID, sessionKey(change.Session)),
	}
	if change.Cause != nil {
		fields = append(fields, zap.String(AttrErrorType, ErrorType(change.Cause)), zap.Error(change.Cause))
	}
	level := zap.InfoLevel
	switch change.To {
	case Suspended, AuthFailed:
		level = zap.WarnLevel
	case Lost:
		level = zap.WarnLevel
		if held > 0 { // somebody lost what they relied on
			level = zap.ErrorLevel
			fields = append(fields, zap.Int(fieldHolds, held))
		}
	}
	c.log.Log(level, "connection state changed", fields...)
}

// fieldHolds is the field of a log line that says how many holds on a session
// (see [Client.HoldSession]) were lost with it.
const fieldHolds = "zookeeper.session.holds"

// run carries one session after another until the client is closed. NewClient
// starts it; Close ends it and waits for it.
func (c *core) run() {
	for c.ctx.Err() == nil {
		servers := c.currentServers()
		s, err := newSession(c, servers)
		if err != nil { // the wire client refused its arguments: a bug, not a condition
			c.log.Error("cannot start a session", zap.Error(err))
			c.fault(err)
			return
		}
		c.begin(s, servers)
		cause := s.run()
		if c.ctx.Err() == nil && c.current() == s {
			c.transition(Lost, s, cause)
		}
		c.bury(s, cause)
		if c.ctx.Err() != nil {
			s.retire() // Close waits for the session to be closed
			return
		}
		c.wg.Go(s.retire) // ends within seconds; Close waits for it
	}
}

// presentState returns the state of this moment.
func (c *core) presentState() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// watchCount returns how many watches the server keeps for the present session.
func (c *core) watchCount() int {
	s := c.current()
	if s == nil {
		return 0
	}
	return s.watches.armed()
}

// current returns the latest session that was connected, nil before the first.
func (c *core) current() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// refused reports whether a server has refused a credential.
func (c *core) refused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == AuthFailed
}

// fault keeps err as the reason why there is no connection.
func (c *core) fault(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastFault = err
}

// awaitSession returns the session once the client is Connected. If that takes
// longer than the connect timeout it returns ErrNotConnected.
func (c *core) awaitSession(ctx context.Context) (*session, error) {
	var found *session
	err := c.await(ctx, func() (bool, error) {
		found = c.session
		return c.state == Connected && found.ended() == nil, nil
	})
	return found, err
}

// awaitLink returns once s is the client's session and has a connection, with
// what ended it if it is over, or as awaitSession does.
func (c *core) awaitLink(ctx context.Context, s *session) error {
	return c.await(ctx, func() (bool, error) {
		if err := s.ended(); err != nil {
			return false, err
		}
		return c.state == Connected && c.session == s, nil
	})
}

// await waits until ready, called with mu held at each transition, says yes or fails.
func (c *core) await(ctx context.Context, ready func() (bool, error)) error {
	var timeout <-chan time.Time
	for {
		if ctx.Err() != nil {
			return ctxerr.Of(ctx)
		}
		c.mu.Lock()
		ok, err := ready()
		changed, state := c.changed, c.state
		c.mu.Unlock()
		switch {
		case c.ctx.Err() != nil: // first: at Close no other state follows at once
			return ErrClosed
		case err != nil:
			return err
		case ok:
			return nil
		case state == AuthFailed:
			return ErrAuthFailed
		}
		if timeout == nil {
			timer := time.NewTimer(c.cfg.connectTimeout)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-changed:
		case <-timeout:
			return c.notConnected()
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctxerr.Of(ctx), c.notConnected())
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// notConnected tells what was tried: the last fault is one of the network, so
// it names addresses and no secret. It is not wrapped: a dial that took too long
// would match context.DeadlineExceeded although the caller's context stands.
func (c *core) notConnected() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastFault == nil {
		return fmt.Errorf("%w (%v)", ErrNotConnected, c.state)
	}
	return fmt.Errorf("%w (%v): %s", ErrNotConnected, c.state, c.lastFault.Error())
}

// listenerPanicked logs what nobody else can be told.
func (c *core) listenerPanicked(p *listeners.PanicError) {
	c.log.Error("a state listener panicked", zap.Error(p), zap.ByteString("stack", p.Stack))
}
