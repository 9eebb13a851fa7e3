package framework

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/retry"
)

// A Client is a managed connection to a ZooKeeper ensemble: it keeps a session,
// tells what state that is in, and retries operations. A Client is a view:
// [Client.Namespace] gives others on the same session. All methods may be called
// concurrently.
type Client struct {
	core    *core
	prefix  string // chroot and namespace: "" or a path
	session int64  // the session that operations are bound to, 0 for any
}

// NewClient returns a client for the ensemble that connect names, as in
// "h1:2181,h2:2181/chroot", and begins to connect in the background: it does not
// wait, see [Client.AwaitConnected]. Where the connect string or an option is
// faulty it starts nothing and returns all faults, joined. The client has to be
// closed.
func NewClient(connect string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(connect, opts)
	if err != nil {
		return nil, err
	}
	c := &core{
		cfg: cfg,
		log: cfg.logger.Named("zk"),
		coreState: coreState{
			state:   Connecting,
			changed: make(chan struct{}),
			up:      make(chan struct{}),
			servers: serverList{given: cfg.servers},
			shared:  make(map[any]any),
		},
	}
	c.credentials.kept = cfg.auth
	c.readOnly.seek = make(chan struct{}, 1)
	c.listeners = listeners.NewQueued[StateChange](c.listenerPanicked)
	for _, fn := range cfg.listeners {
		c.onState(fn)
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background()) // the client's own life
	c.hurry = []retry.DoOption{retry.Hurry(c.nextConnection)}
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

// AwaitConnected returns nil as soon as the client is Connected, which may be
// at once. It waits as long as ctx lets it; the error then wraps ctx's error
// and says why there is no connection. Once the client is closed it returns
// [ErrClosed], and where a credential is refused [ErrAuthFailed].
func (c *Client) AwaitConnected(ctx context.Context) error {
	for {
		_, err := c.core.awaitSession(ctx)
		ended := ctx.Err()
		if ended != nil && errors.Is(err, ErrNotConnected) && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // just after the connect timeout
		}
		if ended != nil || !errors.Is(err, ErrNotConnected) {
			return callError(ctx, "await connection", "", err)
		}
	}
}

// State returns the present state. It is out of date as soon as it is known:
// see [Client.OnState] for every transition. While Close is under way it is the state from
// before, although operations fail with [ErrClosed] by then.
func (c *Client) State() State { return c.core.presentState() }

// OnState calls fn with the present state (in To, with From zero) and then with
// every transition, in order, none dropped. The calls of one listener follow
// one another on a goroutine of its own, so it may block, call the client and
// close it; no other listener waits for it. remove ends the calls and waits for one
// that is running, except when called from inside it. OnState panics if fn is nil.
func (c *Client) OnState(fn func(StateChange)) (remove func()) {
	if fn == nil {
		panic("framework: OnState with a nil listener")
	}
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

// States returns the present state and every transition after it, in order, as
// [Client.OnState] does. The sequence ends when ctx ends, after Closed, or when the loop
// that ranges over it is left.
func (c *Client) States(ctx context.Context) iter.Seq[StateChange] {
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
	// Timeout is what the server granted: for how long the ensemble keeps the
	// session after it last heard of the client.
	Timeout time.Duration
	// Deadline is until when the session certainly stands, on the local
	// monotonic clock. Only answers that passed through the ensemble's leader
	// move it, so it is fresh only while the client writes or somebody holds the
	// session ([Client.HoldSession]); otherwise it may lie in the past while
	// the session is well.
	Deadline time.Time
}

// Session returns the latest session that was connected.
func (c *Client) Session() Session {
	s := c.core.current()
	if s == nil {
		return Session{}
	}
	id, _, timeout := s.tap.Session()
	return Session{ID: id, Timeout: timeout, Deadline: s.tap.Deadline()}
}

// Namespace returns a view of the client whose paths all lie below "/"+ns of
// this one. It shares the session: closing either closes both. ns may have
// several elements; the error says what is wrong with it.
func (c *Client) Namespace(ns string) (*Client, error) {
	prefix, err := namespacePrefix(ns)
	if err != nil {
		return nil, fmt.Errorf("framework: %w", err)
	}
	return &Client{core: c.core, prefix: c.prefix + prefix, session: c.session}, nil
}

func namespacePrefix(ns string) (string, error) {
	if fault := pathFault("/" + ns); fault != "" || ns == "" {
		return "", fmt.Errorf("namespace %q: must be a path without its leading slash", ns)
	}
	return "/" + ns, nil
}

// InSession returns a view of the client whose operations are bound to the
// session with the id: each has its effect in that session or fails with
// [ErrSessionEnded], and never runs in a later one.
func (c *Client) InSession(id int64) *Client {
	return &Client{core: c.core, prefix: c.prefix, session: id}
}

// AbsolutePath returns where the view's path lies in the ensemble, chroot and
// namespace included. Two views of one client mean one znode exactly if these
// are equal.
func (c *Client) AbsolutePath(path string) string { return c.fullPath(path) }

// Root returns a view of the client whose paths are those of the ensemble, as
// [Client.AbsolutePath] returns them: neither chroot nor namespace precedes them.
func (c *Client) Root() *Client { return &Client{core: c.core, session: c.session} }

// Shared returns the value that all views of the client keep under key, made by
// create if there is none yet. It is for recipes whose values on one client have
// to know of each other, and lives as long as the client. create must not call
// the client. Keys are compared as by ==; use a type of your own.
func (c *Client) Shared(key any, create func() any) any {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	value, ok := c.core.shared[key]
	if !ok {
		value = create()
		c.core.shared[key] = value
	}
	return value
}
