package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// The secrets that must show nowhere: a credential, and the data of znodes.
const (
	secret = "hunter2-of-the-simulation"
	canary = "data-of-a-znode-that-is-nobodys-business"
)

// A client is a process that has one framework.Client at a time: when that was closed
// it makes another.
type client struct {
	env   *environment // immutable
	name  string       // immutable
	plan  clientPlan   // immutable
	line  *line        // immutable
	owner lock.Owner   // immutable; shared by those workers that have none of their own

	mu      sync.Mutex // guards following; taken before or without environment.mu
	r       *rand.Rand
	f       *framework.Client
	record  *record
	closing bool
	locals  map[localKey]*lock.Local // that the workers share

	state     framework.State // guarded by environment.mu: that the listener was told of last
	connected time.Duration   // guarded by environment.mu: when that was
}

// A localKey names what the workers of a client have one Local for.
type localKey struct {
	f    *framework.Client
	path string
}

// local returns the client's Local at the path.
func (c *client) local(f *framework.Client, path string, m *lock.Mutex) (lock.Locker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := localKey{f, path}
	if l := c.locals[key]; l != nil {
		return l, nil
	}
	l, err := lock.NewLocal(m, c.plan.handoff)
	if err != nil {
		return nil, err
	}
	if c.locals == nil {
		c.locals = make(map[localKey]*lock.Local)
	}
	c.locals[key] = l
	return l, nil
}

// A record is the notifications that a listener received from one framework.Client.
type record struct {
	client  string
	changes []framework.StateChange // guarded by environment.mu
}

func (env *environment) newClient(i int, p clientPlan) *client {
	r := rand.New(rand.NewPCG(p.seed, 2))
	c := &client{env: env, name: fmt.Sprint("client", i), plan: p, r: r, owner: lock.NewOwner(fmt.Sprint("owner", i))}
	c.line = newLine(c, rand.New(rand.NewPCG(p.seed, 3)))
	return c
}

// present returns the framework.Client, and whether it is being closed.
func (c *client) present() (f *framework.Client, closing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.f, c.closing
}

// usable returns the framework.Client, nil if it is closed or is being closed.
func (c *client) usable() *framework.Client {
	if f, closing := c.present(); !closing && f.State() != framework.Closed {
		return f
	}
	return nil
}

func (c *client) current() *framework.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.f
}

// start makes the framework.Client.
func (c *client) start() error {
	rec := &record{client: c.name}
	opts := []framework.Option{
		framework.WithDialer(c.dialer(rec)),
		framework.WithSessionTimeout(c.env.plan.timeout),
		framework.WithMaxPacket(smallPacket, smallPacket),
		framework.WithLogger(zap.New(&eavesdropper{LevelEnabler: zapcore.InfoLevel, env: c.env})),
		framework.WithStateListener(c.listener(rec)),
	}
	if c.plan.policy != nil {
		opts = append(opts, framework.WithRetry(c.plan.policy))
	}
	if c.plan.auth {
		opts = append(opts, framework.WithAuth("digest", []byte("user:"+secret)))
	}
	if c.plan.slow {
		opts = append(opts, framework.WithStateListener(func(framework.StateChange) { pass(c.env.plan.timeout / 3) }))
	}
	if c.plan.panics {
		opts = append(opts, framework.WithStateListener(func(framework.StateChange) { panic("a listener's own fault") }))
	}
	f, err := c.plan.view.dialed(c.env.srv.Addr(), opts)
	if err != nil {
		return err
	}
	c.env.count("view: "+c.plan.view.name, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.f, c.record = f, rec
	return nil
}

// dialer returns what the framework.Client with the record connects by.
func (c *client) dialer(rec *record) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := c.line.dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &introduced{Conn: conn, env: c.env, who: rec}, nil
	}
}

// smallPacket keeps the buffers of the many clients small.
const smallPacket = 16 << 10

func (c *client) listener(rec *record) func(framework.StateChange) {
	listen := func(change framework.StateChange) {
		c.env.mu.Lock()
		defer c.env.mu.Unlock()
		c.env.note(c.name, "is "+change.To.String(), change.Cause)
		rec.changes = append(rec.changes, change)
		c.state, c.connected = change.To, c.env.now()
	}
	return c.env.bug.listener(listen)
}

// close closes the framework.Client and holds what its listener heard against the
// diagram of states.
func (c *client) close() {
	c.mu.Lock()
	f, rec := c.f, c.record
	c.mu.Unlock()
	c.env.report(c.name, "Close", nil)
	err := c.closeWatched(f)
	c.env.report(c.name, "Close has returned", err)
	c.env.inspect(err)
	if err != nil && !errors.Is(err, framework.ErrClosed) {
		c.env.count("closes with deletions undone", 1)
	}
	c.env.mu.Lock()
	defer c.env.mu.Unlock()
	c.env.checkStates(rec)
}

// restart makes a new framework.Client after the old one was closed.
func (c *client) restart() {
	c.close()
	if err := c.start(); err != nil {
		c.env.violated(liveness, "a new client: %v", err)
	}
}

// follows says which state may come after which.
var follows = map[framework.State][]framework.State{
	0:                    {framework.Connecting},
	framework.Connecting: {framework.Connected, framework.Closed},
	framework.Connected:  {framework.Suspended, framework.Lost, framework.Closed},
	framework.Suspended:  {framework.Connected, framework.Lost, framework.Closed},
	framework.Lost:       {framework.Connected, framework.Closed},
}

// checkStates is the validator of "honest states" for what a listener heard until its
// client was closed. It needs env.mu.
func (env *environment) checkStates(rec *record) {
	last := framework.State(0)
	for _, change := range rec.changes {
		allowed := false
		for _, to := range follows[last] {
			allowed = allowed || to == change.To
		}
		if change.From != last || !allowed {
			env.violatedLocked(honestStates, "%s heard of %v after %v", rec.client, change, last)
		}
		last = change.To
	}
	if last != framework.Closed {
		env.violatedLocked(honestStates, "%s was closed and the last that was heard is %v", rec.client, last)
	}
}

// asked is the function of WithRevocation.
func (c *client) asked(l *lock.Lease) {
	c.mu.Lock()
	obeys := c.r.IntN(2) == 0
	c.mu.Unlock()
	c.env.report(c.name, "is asked to let go", l.Node())
	if !obeys {
		return
	}
	c.env.askedToLeave(l)
	ctx, cancel := context.WithTimeout(c.env.ctx, c.env.plan.timeout)
	defer cancel()
	c.env.inspect(l.Release(ctx))
	c.env.count("revocations heeded", 1)
}

// inspect is the validator of "nothing hidden" for the text of an error.
func (env *environment) inspect(err error) {
	if err == nil {
		return
	}
	env.inspectText("an error", env.bug.err(err).Error())
}

func (env *environment) inspectText(where, text string) {
	if strings.Contains(text, secret) || strings.Contains(text, canary) {
		env.violated(nothingHidden, "%s tells a secret: %s", where, text)
	}
}

// An eavesdropper is a log whose lines are looked through for secrets.
type eavesdropper struct {
	zapcore.LevelEnabler
	env *environment
}

func (e *eavesdropper) With([]zapcore.Field) zapcore.Core { return e }
func (e *eavesdropper) Sync() error                       { return nil }

func (e *eavesdropper) Check(entry zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Enabled(entry.Level) {
		return ce.AddCore(entry, e)
	}
	return ce
}

func (e *eavesdropper) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	e.env.inspectText("the log", entry.Message)
	for _, f := range fields {
		e.env.inspectText("the log", f.String)
		if f.Interface != nil {
			e.env.inspectText("the log", fmt.Sprint(f.Interface))
		}
	}
	return nil
}

// A call is a context, and what has to be known of it to judge what it ended.
type call struct {
	ctx   context.Context
	stop  func()
	began time.Time
	ends  time.Time // zero for never
}

// endedBy are causes that a context may end by: what other work came to, which must not
// be taken for an answer to this one's.
var endedBy = []error{
	nil,
	framework.ErrSessionExpired,
	&lock.LostError{Path: "/other", Cause: framework.ErrSessionDeadline},
	framework.ErrClosed,
	framework.ErrNoNode,
	framework.ErrNodeExists,
	framework.ErrNotConnected,
	framework.ErrUnknownOutcome,
	lock.ErrHeld,
	lock.ErrReleased,
}
