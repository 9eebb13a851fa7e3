package framework

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/retry"
)

// A Client is a managed connection to a ZooKeeper ensemble. It keeps a session, reports the state
// of that session, and retries operations. A Client is a view: [Client.Namespace] returns other
// views on the same session. All methods may be called concurrently.
type Client struct {
	core    *core
	prefix  string // chroot and namespace: "" or a path
	session int64  // the session that operations are bound to, 0 for any
}

// NewClient returns a client for the ensemble that connect names, as in "h1:2181,h2:2181/chroot".
// It connects in the background and does not wait; [Client.AwaitConnected] waits. If the connect
// string or an option is invalid, NewClient starts nothing and returns all faults, joined. The
// caller has to close the client.
func NewClient(connect string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(connect, opts)
	if err != nil {
		return nil, err
	}
	c := &core{
		cfg: cfg,
		log: cfg.logger.Named("zk"),
		coreState: coreState{
			state:     Connecting,
			changed:   make(chan struct{}),
			up:        make(chan struct{}),
			servers:   serverList{given: cfg.servers},
			abandoned: make(map[int64]chan struct{}),
		},
		claims:   claims{held: make(map[string]*claim)},
		shared:   sharedValues{byType: make(map[reflect.Type]any)},
		dirsRead: dirsRead{dirs: make(map[string]*dirRead)},
	}
	c.credentials.kept, c.credentials.refusal = cfg.auth, make(chan struct{})
	c.readOnly.seek = make(chan struct{}, 1)
	c.listeners = listeners.NewQueued[StateChange](c.listenerPanicked)
	for _, fn := range cfg.listeners {
		c.onState(fn)
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background()) // the client's own life
	c.baseRetry = []retry.DoOption{retry.Hurry(c.nextConnection)}
	c.deletes = newDeletes(c)
	c.telemetry = newTelemetry(c)
	c.wg.Go(c.run)
	if cfg.readOnly {
		c.wg.Go(c.readOnlyLoop)
	}
	if cfg.tracking {
		c.wg.Go(newTracker(c, configPath).loop)
	}
	return &Client{core: c, prefix: cfg.prefix}, nil
}

// AwaitConnected returns nil as soon as the client is Connected, which may be at once. If ctx ends
// first, the error wraps ctx's error and says why there is no connection. Once the client is
// closed, AwaitConnected returns [ErrClosed], and so does that of a view of [Client.InSession] once its
// session has ended. While a server refuses a credential, it returns [ErrAuthFailed].
func (c *Client) AwaitConnected(ctx context.Context) error {
	for {
		s, err := c.core.awaitSession(ctx)
		if err == nil && c.session != 0 && s.ID() != c.session {
			err = c.viewClosed()
		}
		ended := ctx.Err()
		if ended != nil && errors.Is(err, ErrNotConnected) && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // just after the connect timeout
		}
		if ended != nil || !errors.Is(err, ErrNotConnected) {
			return c.callError(ctx, "await connection", "", err)
		}
	}
}

// State returns the present state, which can change at any moment; [Client.OnState] reports every
// transition. While Close is under way, State returns the state from before, although operations
// already fail with [ErrClosed].
func (c *Client) State() State { return c.core.presentState() }

// OnState calls fn with the present state (in To, with From zero) and then with every transition,
// in order; it drops none. The calls of one listener run one after another on a goroutine of their
// own. So fn may block, call the client and close it, and no other listener waits for it. remove
// ends the calls and waits for one that is running, except when fn itself calls remove. OnState
// panics if fn is nil.
func (c *Client) OnState(fn func(StateChange)) (remove func()) {
	usercall.Require("fn", fn != nil)
	return c.core.onState(fn)
}

func (c *core) onState(fn func(StateChange)) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := StateChange{To: c.state, At: time.Now()}
	if c.session != nil {
		now.Session = c.session.ID()
	}
	return c.listeners.AddWith(now, fn)
}

// States returns the present state and every transition after it, in order, as [Client.OnState]
// reports them. The sequence ends when ctx ends, after Closed, or when the caller's loop ends.
func (c *Client) States(ctx context.Context) iter.Seq[StateChange] {
	usercall.Require("ctx", ctx != nil)
	return func(yield func(StateChange) bool) {
		changes := make(chan StateChange)
		ctx, cancel := context.WithCancel(ctx)
		remove := c.core.onState(func(change StateChange) {
			select {
			case changes <- change:
			case <-ctx.Done():
			}
		})
		defer remove()
		defer cancel() // before remove, which waits for the listener
		for {
			select {
			case change := <-changes:
				if !yield(change) || change.To == Closed {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// A Session is what a client knows of its ZooKeeper session.
type Session struct {
	// ID is the session's number at the ensemble; zero before the first connection.
	ID int64
	// Timeout is what the server granted: for how long the ensemble keeps the session after the
	// last message that it received from the client.
	Timeout time.Duration
	// Deadline is the moment until which the session is certainly valid, on the local monotonic
	// clock. Only replies that passed through the ensemble's leader move it. So it is fresh only
	// while the client writes or a caller holds the session ([Client.HoldSession]). Otherwise it
	// may lie in the past although the session is valid.
	Deadline time.Time
	// Margin is how far the deadline lies before the earliest moment at which the ensemble can
	// expire the session: see [WithLeaseMargin].
	Margin time.Duration
}

// Session returns the latest session that had a connection; it is zero before the first connection.
func (c *Client) Session() Session {
	s := c.core.current()
	if s == nil {
		return Session{}
	}
	return Session{ID: s.ID(), Timeout: s.Timeout(), Deadline: s.Deadline(), Margin: c.core.cfg.margin(s.Timeout())}
}

// ConnectTimeout returns what [WithConnectTimeout] has set, or its default.
func (c *Client) ConnectTimeout() time.Duration { return c.core.cfg.connectTimeout }

// Namespace returns a view of the client whose paths all lie below "/"+ns of this view. The views
// share the session: closing either view closes both. ns may have several elements. If ns is
// invalid, the error says why.
func (c *Client) Namespace(ns string) (*Client, error) {
	prefix, err := namespacePrefix(ns)
	if err != nil {
		return nil, fmt.Errorf("framework: %w", err)
	}
	view := *c
	view.prefix += prefix
	return &view, nil
}

func namespacePrefix(ns string) (string, error) {
	if fault := pathFault("/" + ns); fault != "" || ns == "" {
		return "", fmt.Errorf("namespace %q: must be a path without its leading slash", errtype.Shortened(ns))
	}
	return "/" + ns, nil
}

// InSession returns a view of the client whose operations are bound to the session with the id.
// Each operation has its effect in that session or fails with [ErrSessionEnded]; it never runs in a
// later session. [Client.HoldSession] and [Client.AwaitConnected], and with them each recipe that holds
// something, then fail with [ErrClosed]. A view of a view of a session is bound to the latter's session.
func (c *Client) InSession(id int64) *Client {
	view := *c
	if c.session == 0 {
		view.session = id
	}
	return &view
}

// viewClosed returns the error of a view of a session that has ended.
func (c *Client) viewClosed() error {
	return fmt.Errorf("%w: it is a view of session %#x, which has ended", ErrClosed, c.session)
}

// AbsolutePath returns the path in the ensemble of the view's path, with chroot and namespace. Two
// views of one client refer to one znode exactly if these paths are equal.
func (c *Client) AbsolutePath(path string) string { return c.fullPath(path) }

// Root returns a view of the client whose paths are the paths in the ensemble, as
// [Client.AbsolutePath] returns them. Neither chroot nor namespace precedes them.
func (c *Client) Root() *Client {
	view := *c
	view.prefix = ""
	return &view
}

// Shared returns the value of type T that all views of the client share. If there is none, create
// makes it. Shared is for recipes whose values on one client have to know of each other, so T has to be
// a type of the recipe's own. The value lives as long as the client. create must not ask for the same value.
func Shared[T any](c *Client, create func() T) T {
	usercall.Require("c", c != nil)
	usercall.Require("create", create != nil)
	c.core.shared.mu.Lock()
	value, ok := c.core.shared.byType[reflect.TypeFor[T]()]
	if !ok {
		value = sync.OnceValue(create)
		c.core.shared.byType[reflect.TypeFor[T]()] = value
	}
	c.core.shared.mu.Unlock()
	return value.(func() T)()
}

// closeGrace is how long Close waits for running listeners.
const closeGrace = 5 * time.Second

// Close ends the session, so that its ephemeral znodes are deleted at once. The close goes ahead of all
// requests. If there is no connection, or its server does not reply soon, Close asks all servers to end
// the session, for a second. If none does, the ensemble ends the session within the session timeout, and
// the error says so; it wraps [ErrUnknownOutcome]. Close also asks them to end an earlier session that was
// abandoned and is not closed yet. If none does, that is no error, because the session was lost before.
//
// Close returns when the client's goroutines and sockets are gone, which takes about a second at
// the most, and all listeners have returned. It does not wait longer than five seconds for a
// listener, nor for a connection, a dialer or another function of the user's. Operations in progress end with
// [ErrClosed]. The error names the guaranteed deletions that were not done and do not end with the session. Close
// may be called several times, also from a listener, and closes all views of the client.
func (c *Client) Close() error {
	core := c.core
	core.closing.Do(func() { core.closeErr = core.close() })             // later calls wait
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace) // the client's has ended
	defer cancel()
	// Each caller waits by itself, because Close does not wait for a listener that calls it.
	if err := core.listeners.Close(ctx); err != nil {
		core.log.Warn("a state listener is still at work after the client was closed", zap.Error(err))
	}
	_ = core.cfg.lines.Flush(ctx) // if the log's sink blocks, there is nowhere to report it
	return core.closeErr
}

func (c *core) close() error {
	c.mu.Lock()
	c.refusing = true
	running := c.running
	c.mu.Unlock()
	c.cancel(ErrClosed)
	if running != nil {
		running.End(ErrClosed) // its loop does that, too, unless a function of the user's blocks it
	}
	c.awaitGoroutines()
	c.mu.Lock()
	last, unclosed := c.session, c.unclosed
	c.mu.Unlock()
	c.transition(Closed, last, nil)
	c.telemetry.Close()
	return errors.Join(c.deletes.close(), unclosed)
}

// awaitGoroutines waits for the client's goroutines, but not forever: a connection or a function of
// the user's may block one of them.
func (c *core) awaitGoroutines() {
	done := make(chan struct{})
	go func() { // ends with them
		c.wg.Wait()
		close(done)
	}()
	grace := time.NewTimer(workGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		c.log.Warn("a goroutine is still at work after the client was closed: a connection or a function of the user's blocks it")
	}
}

// workGrace is how long Close waits for the client's goroutines: as long as the end of a session waits
// for a user's functions, and two seconds for the wire client.
const workGrace = closeGrace + 2*time.Second

// spawn runs fn on a goroutine that Close waits for, unless Close has begun.
func (c *core) spawn(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refusing {
		return false
	}
	c.wg.Go(fn)
	return true
}
