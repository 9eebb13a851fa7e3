package framework

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/retry"
)

// A core is what all views of one client share: its state and its sessions, one after another.
type core struct {
	cfg         config           // immutable
	baseRetry   []retry.DoOption // of every operation; immutable
	log         *zap.Logger
	listeners   *listeners.Queued[StateChange]
	deletes     *deletes
	claims      claims
	readOnly    readOnly
	trees       watchreg.Trees
	credentials credentials
	telemetry   *otelzk.Telemetry
	meters      usercall.Queue // for metrics of the client's own goroutines
	breaks      atomic.Int64   // transitions to any state but Connected
	life

	mu sync.Mutex // guards coreState; never held across a request or a callback
	coreState

	shared   sharedValues
	dirsRead dirsRead
}

// sharedValues are the values of [Shared].
type sharedValues struct {
	mu     sync.Mutex
	byType map[reflect.Type]any
}

// A life is the part of a core that Close ends.
type life struct {
	ctx      context.Context // ends at Close
	cancel   context.CancelCauseFunc
	wg       sync.WaitGroup // every goroutine of the client, listeners apart
	closing  sync.Once
	closeErr error // set by closing
}

// A coreState is the part of a core that changes. It is guarded by core.mu.
type coreState struct {
	state     State
	session   *session.Session // the latest that was connected; nil before the first
	running   *session.Session // the latest that was begun
	changed   chan struct{}    // closed and replaced at each transition
	up        chan struct{}    // as changed, but only at Connected and ReadOnly; closed at Closed
	lastFault error            // why there is no connection
	refusedBy error            // the cause of the latest AuthFailed
	outage    outage           // the attempts to connect since the client was Connected
	lines     lines
	servers   serverList
	abandoned map[int64]chan struct{} // sessions to be closed; each channel is closed after that
	refusing  bool                    // Close has begun: no new goroutines
	unclosed  error                   // at Close: the sessions that no server has closed
}

// transition changes the state and notifies the listeners. Its callers are the client's loop and,
// for Closed, Close when that loop has ended.
func (c *core) transition(to State, s *session.Session, cause error) {
	c.transitionIf(func() (State, *session.Session, bool) { return to, s, true }, cause)
	switch to {
	case Connected, AuthFailed:
		c.endReadOnly()
	case Lost:
		c.showReadOnly()
	}
}

// transitionIf is transition to the state that next returns, about the session that it returns, if
// next also returns true. It calls next with mu held. It reports whether the state changed.
func (c *core) transitionIf(next func() (State, *session.Session, bool), cause error) bool {
	c.mu.Lock()
	to, s, ok := next()
	if !ok || c.state == to || c.state == Closed { // Close does not wait forever: see core.close
		c.mu.Unlock()
		return false
	}
	change := StateChange{From: c.state, To: to, Session: s.ID(), Cause: cause, At: time.Now()}
	c.state = to
	if to != Connected {
		c.breaks.Add(1)
	}
	switch to {
	case Connected:
		c.session, c.outage = s, outage{}
		close(c.up)
		c.up = make(chan struct{})
	case ReadOnly:
		close(c.up)
		c.up = make(chan struct{})
	case AuthFailed:
		c.refusedBy = cause
	case Closed:
		close(c.up) // for good: an operation that pauses before a retry ends now
	}
	c.lastFault = cause
	close(c.changed)
	c.changed = make(chan struct{})
	c.listeners.Notify(change) // under mu, so that listeners see the order of the states
	left, due := c.lines.change(to, change.At)
	c.mu.Unlock()
	c.meters.Do(func() {
		c.telemetry.Changed(c.ctx, change.To.key())
		if change.To == Lost {
			c.telemetry.Expired(c.ctx, change.Cause)
		}
	})
	if due {
		c.logChange(s, change, left)
	}
	return true
}

// logChange logs the change. left is how many breaks of the connection were not logged before this one.
func (c *core) logChange(s *session.Session, change StateChange, left int) {
	fields := []zap.Field{
		zap.String(zktel.AttrConnectionState, change.To.key()),
		zap.String(zktel.AttrSessionID, otelzk.SessionKey(change.Session)),
	}
	if left > 0 {
		fields = append(fields, zap.Int(fieldLeftOut, left))
	}
	if change.Cause != nil {
		fields = append(fields, zap.String(zktel.AttrErrorType, errtype.Of(change.Cause)), zap.Error(change.Cause))
	}
	level := zap.InfoLevel
	switch change.To {
	case Suspended, AuthFailed, ReadOnly:
		level = zap.WarnLevel
	case Lost:
		level = zap.WarnLevel
		timeout := s.Timeout()
		fields = append(fields, zap.Duration(session.FieldTimeout, timeout), zap.Duration(session.FieldMargin, c.cfg.margin(timeout)))
		if held := s.HeldAtEnd(); held > 0 { // holders lost the session that they relied on
			level = zap.ErrorLevel
			fields = append(fields, zap.Int(fieldHolds, held))
		}
	}
	c.log.Log(level, "connection state changed", fields...)
}

// fieldHolds is the field of a log line that says how many holds on a session were lost with it.
// [Client.HoldSession] takes such a hold.
const fieldHolds = "zookeeper.session.holds"

// run runs one session after another until the client is closed. NewClient starts it; Close ends it
// and waits for it.
func (c *core) run() {
	for c.ctx.Err() == nil {
		servers := c.currentServers()
		s, err := c.newSession(servers, false)
		if err != nil { // the wire client refused its arguments: a bug
			c.log.Error("cannot start a session", zap.Error(err))
			c.fault(err)
			return
		}
		c.begin(s, servers)
		cause := s.Run()
		if c.ctx.Err() == nil && c.current() == s {
			c.transition(Lost, s, cause)
		}
		s.AwaitUsers() // of its loss; Close closes the session after that
		c.closeAbandoned(s, cause)
		if c.ctx.Err() != nil {
			c.closeSession(s, cause)
			s.Retire()
			return
		}
		c.wg.Go(s.Retire) // ends within seconds; Close waits for it
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
	return s.Watches().Armed()
}

// current returns the latest session that had a connection; it is nil before the first.
func (c *core) current() *session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// fault keeps err as the reason why there is no connection.
func (c *core) fault(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastFault = err
}

// listenerPanicked logs the panic, because no caller can get it.
func (c *core) listenerPanicked(p *listeners.PanicError) {
	c.log.Error("a state listener panicked", zap.Error(p), zap.ByteString("stack", p.Stack))
}

// awaitUp waits until the client is Connected, whatever states come before that,
// and returns false if it is closed first.
func (c *core) awaitUp() bool {
	for {
		c.mu.Lock()
		state, up := c.state, c.up
		c.mu.Unlock()
		if state == Connected {
			return true
		}
		select {
		case <-up:
		case <-c.ctx.Done():
			return false
		}
	}
}

// awaitSession returns the session once the client is Connected. If that takes longer than the
// connect timeout, it returns ErrNotConnected.
func (c *core) awaitSession(ctx context.Context) (*session.Session, error) {
	var found *session.Session
	err := c.await(ctx, func() (bool, error) {
		found = c.session
		return c.state == Connected && found.Serves(), nil
	})
	return found, err
}

// awaitConnection returns once s is the client's session and has a connection. If s has ended, it returns
// the cause; other errors are as with awaitSession.
func (c *core) awaitConnection(ctx context.Context, s *session.Session) error {
	return c.await(ctx, func() (bool, error) {
		if err := s.Ended(); err != nil {
			return false, err
		}
		return c.state == Connected && c.session == s && s.Serves(), nil
	})
}

// await waits until ready returns true or an error. It calls ready with mu held, at each
// transition.
func (c *core) await(ctx context.Context, ready func() (bool, error)) error {
	usercall.Require("ctx", ctx != nil)
	var timeout <-chan time.Time
	for {
		if timeout == nil && ctx.Err() != nil {
			return c.endedBefore(ctx)
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
			return c.refusal()
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
			return fmt.Errorf("%w: %w", ctx.Err(), c.notConnected())
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// refusal returns why the client is AuthFailed: ErrAuthFailed, with what the server refused.
func (c *core) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.refusedBy, ErrAuthFailed)
}

// endedBefore returns the error of a call whose context had ended when the call began. It says why
// there is no connection if there is none.
func (c *core) endedBefore(ctx context.Context) error {
	switch c.presentState() {
	case Connecting, Suspended, Lost:
		return fmt.Errorf("%w: %w", ctx.Err(), c.notConnected())
	}
	return ctx.Err()
}

// notConnected returns ErrNotConnected with the last fault. That fault is of the network, so it
// names addresses and no secret. It is not wrapped, because a dial that took too long would match
// context.DeadlineExceeded although the caller's context has not ended. Before the first fault, the error
// names the servers, of which none has replied.
func (c *core) notConnected() error {
	c.mu.Lock()
	servers, state, fault := c.servers.first(), c.state, c.lastFault
	c.mu.Unlock()
	switch {
	case fault != nil:
		return fmt.Errorf("%w (%v): %s", ErrNotConnected, state, fault.Error())
	case state == Connecting && len(servers) > 0:
		return fmt.Errorf("%w (%v): no reply yet from %s", ErrNotConnected, state, errtype.Shortened(strings.Join(servers, ",")))
	}
	return fmt.Errorf("%w (%v)", ErrNotConnected, state)
}
