package framework

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/usercall"
)

// newSession returns a session that connects to servers. If readsOnly is true, it connects only to
// read-only servers.
func (c *core) newSession(servers serverList, readsOnly bool) (*session.Session, error) {
	cfg := session.Config{
		Client:         sessionClient{c},
		Log:            c.log,
		Servers:        hosts.New(servers.first(), servers.fallback(), c.cfg.resolve),
		Timeout:        c.cfg.sessionTimeout,
		ConnectTimeout: c.cfg.connectTimeout,
		MaxRequest:     c.cfg.maxRequest,
		MaxReply:       c.cfg.maxReply,
		Margin:         c.cfg.margin,
		Trees:          &c.trees,
	}
	if c.cfg.marginGiven {
		cfg.Wanted = c.cfg.leaseMargin
	}
	if readsOnly {
		cfg.ReadOnly, cfg.Client, cfg.Trees = true, readOnlyClient{sessionClient{c}}, nil
	}
	return session.New(c.ctx, cfg)
}

// A sessionClient is the client of its own sessions.
type sessionClient struct{ core *core }

// Connect is part of [session.Client], as the following methods are.
func (c sessionClient) Connect(ctx context.Context, t hosts.Target) (net.Conn, error) {
	return c.core.cfg.connect(ctx, t)
}

func (c sessionClient) StartSASL(ctx context.Context, server string) (wire.Exchange, error) {
	return c.core.cfg.startSASL(ctx, server)
}

func (c sessionClient) Credentials() []wire.Credential { return c.core.credentials.present() }

func (c sessionClient) Refused() bool { return c.core.presentState() == AuthFailed }

func (c sessionClient) BeginRound(s *session.Session) { c.core.askForServers(s) }

func (c sessionClient) RoundFailed() {
	select {
	case c.core.readOnly.seek <- struct{}{}:
	default: // its loop has a connection, is about to look for one, or there is none
	}
}

func (c sessionClient) Failed(server string, err error) { c.core.failed(server, err) }

func (c sessionClient) Connected(s *session.Session) {
	c.core.transition(Connected, s, nil)
}

func (c sessionClient) Suspended(s *session.Session, fault error) {
	c.core.transition(Suspended, s, fault)
}

func (c sessionClient) AuthFailed(s *session.Session, fault error) {
	c.core.transition(AuthFailed, s, fault)
	c.core.credentials.refuse()
}

func (c sessionClient) Spawn(fn func()) bool { return c.core.spawn(fn) }

// A readOnlyClient is the client of sessions at read-only servers.
type readOnlyClient struct{ sessionClient }

func (c readOnlyClient) Credentials() []wire.Credential { return c.core.credentials.all() }

func (readOnlyClient) BeginRound(*session.Session) {}
func (readOnlyClient) RoundFailed()                {}

func (c readOnlyClient) Failed(server string, err error)  { c.core.readOnlyFailed(server, err) }
func (c readOnlyClient) Connected(*session.Session)       { c.core.enterReadOnly() }
func (readOnlyClient) Suspended(*session.Session, error)  {}
func (readOnlyClient) AuthFailed(*session.Session, error) {}

// Bounds of the pause between attempts to close an abandoned session. The pause doubles with each
// attempt; a part of it is random.
const (
	minClosePause = 50 * time.Millisecond
	maxClosePause = 2 * time.Second
)

// A sessionCloser closes a session that the client abandoned while the ensemble may still have it.
// Otherwise the session's ephemeral znodes, such as locks, would exist for up to a session timeout
// more. They would exist for longer if delayed frames arrive late and renew the session. The
// sessionCloser has a connection of its own, which carries nothing else. The lease clock does not
// see that connection.
type sessionCloser struct {
	core    *core
	session *session.Session // which has ended
}

// closeAbandoned closes s at the ensemble, in the background. It does nothing if the ensemble
// itself said that s is over, or if the client's Close closes s in order. Its caller is run, after
// run has reported the end of s.
func (c *core) closeAbandoned(s *session.Session, cause error) {
	if c.current() != s || !errors.Is(cause, ErrSessionDeadline) && !errors.Is(cause, wire.ErrSubstituted) {
		return // a session that never served has no znodes
	}
	over := make(chan struct{})
	c.mu.Lock()
	c.abandoned[s.ID()] = over
	c.mu.Unlock()
	c.wg.Go(func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.abandoned, s.ID())
			close(over)
		}()
		(&sessionCloser{core: c, session: s}).run()
	})
}

// AwaitSessionEnd waits until the ensemble has ended a session of the client's. Until then the
// session's znodes exist, and its requests may still be applied, although the session may be over for
// the client. The client closes such a session in the background. If it can't, the session counts as
// ended once the ensemble has had a session timeout and a lease margin to expire it. AwaitSessionEnd
// returns nil at once for a session that has ended or never was the client's. If ctx ends first, the
// error wraps ctx's. After Close it returns [ErrClosed].
func (c *Client) AwaitSessionEnd(ctx context.Context, session int64) error {
	usercall.Require("ctx", ctx != nil)
	return c.callError(ctx, "await session end", "", c.core.awaitSessionEnd(ctx, session))
}

func (c *core) awaitSessionEnd(ctx context.Context, id int64) error {
	for {
		c.mu.Lock()
		over, abandoned := c.abandoned[id]
		present := c.session != nil && c.session.ID() == id
		if !abandoned {
			over = c.changed
		}
		c.mu.Unlock()
		switch {
		case c.ctx.Err() != nil:
			return ErrClosed
		case !abandoned && !present:
			return nil
		}
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ctx.Done():
		}
	}
}

// run repeats attempts until the session is over. It begins a lease margin after the end, not
// before the ensemble could have expired the session by itself. So a client that lost a lock has
// that long to stop before the next grant, unless Close comes first.
//
// run pauses while the client has no connection, so that not two loops of each client dial servers
// that are in trouble. core.run starts it. It ends by itself once the ensemble has had a session
// timeout, and a margin, to expire the session. At Close, which waits for it, all servers are asked once
// more.
func (b *sessionCloser) run() {
	<-b.session.Context().Done()                                       // all holds of the session have been notified
	_ = pace.Sleep(b.core.ctx, b.core.cfg.margin(b.session.Timeout())) // Close ends it
	var expiry time.Time
	for attempt := 0; b.core.awaitUp() && b.core.ctx.Err() == nil; attempt++ {
		if expiry.IsZero() {
			timeout := b.session.Timeout()
			expiry = time.Now().Add(timeout + b.core.cfg.margin(timeout))
		}
		err := b.attempt(b.core.ctx, b.server(attempt))
		expired := time.Now().After(expiry)
		if b.log(err, expired); err == nil || expired {
			return
		}
		limit := pace.Doubled(minClosePause, maxClosePause, attempt)
		_ = pace.Sleep(b.core.ctx, limit/2+rand.N(limit/2)) // Close ends it
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.core.ctx), closeLimit)
	defer cancel()
	b.log(b.anywhere(ctx, b.core.currentServers().first()), false) // its users know that it was lost
}

// leftOpen records for Close that no server has closed s.
func (c *core) leftOpen(s *session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unclosed = errors.Join(c.unclosed, fmt.Errorf("%w: no server has closed the session %s; its ephemeral znodes exist until it expires, within %v",
		ErrUnknownOutcome, otelzk.SessionKey(s.ID()), s.Timeout()))
}

// server returns the server for the attempt. The first is the server that the client has just
// reached. After that, any server and that server take turns.
func (b *sessionCloser) server(attempt int) hosts.Target {
	if s := b.core.current(); attempt%2 == 0 && s != nil {
		return s.Target()
	}
	return hosts.Target{Server: hosts.Shuffled(b.core.currentServers().first())[0]}
}

// attempt makes one attempt at one server. It lasts at most as long as an attempt to reconnect.
func (b *sessionCloser) attempt(ctx context.Context, t hosts.Target) error {
	ctx, cancel := context.WithTimeout(ctx, b.session.AttemptLimit())
	defer cancel()
	targets, err := t.Resolved(ctx, b.core.cfg.resolve)
	if err != nil {
		return err
	}
	conn, err := b.core.cfg.connect(ctx, targets[0])
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the outcome is known by then
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	exchange, err := b.core.cfg.startSASL(ctx, t.Server)
	if err != nil {
		return err
	}
	id, password := b.session.Secret()
	return wire.CloseSession(ctx, conn, wire.Identification{SASL: exchange, Credentials: b.core.credentials.all()}, id, password)
}

// log reports an attempt. The level is warn if the attempt failed and is the last, because the
// ensemble has had its time.
func (b *sessionCloser) log(err error, last bool) {
	session := zap.String(zktel.AttrSessionID, otelzk.SessionKey(b.session.ID()))
	if err == nil {
		b.core.log.Debug("closed the session that was given up", session)
		return
	}
	level := zap.DebugLevel
	if last {
		level = zap.WarnLevel
	}
	b.core.log.Log(level, "cannot close the session that was given up", session,
		zap.String(zktel.AttrErrorType, errtype.Of(err)), zap.Error(err))
}

// Bounds of the end of a session by Close. Its own server, if there is one, is asked first. If that takes
// longer than ownPatience, as with a server that is frozen or a slow link, the others are asked, too.
const (
	closeLimit  = time.Second
	ownPatience = 150 * time.Millisecond
)

// closeByOwn makes the server of the present connection close s, which has ended, in time.
func (c *core) closeByOwn(s *session.Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), closeLimit)
	defer cancel()
	return s.CloseAtServer(ctx)
}

// closeSession ends s, which has ended for the cause, at the ensemble, because of Close, and in time.
func (c *core) closeSession(s *session.Session, cause error) {
	if c.current() != s { // it never served, so it has no znodes
		_ = c.closeByOwn(s)
		return
	}
	if errors.Is(cause, ErrSessionEnded) {
		return // closeAbandoned does what there is to do
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), closeLimit)
	defer cancel()
	b := &sessionCloser{core: c, session: s}
	failed := make(chan struct{})
	own := func(ctx context.Context) error {
		err := s.CloseAtServer(ctx)
		if err != nil {
			close(failed)
		}
		return err
	}
	others := func(ctx context.Context) error {
		patience := time.NewTimer(ownPatience)
		defer patience.Stop()
		select {
		case <-failed:
		case <-patience.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		err := b.anywhere(ctx, c.currentServers().first())
		if err == nil {
			b.log(nil, false)
		}
		return err
	}
	err := anyOf(ctx, []func(context.Context) error{own, others}, func(ctx context.Context, way func(context.Context) error) error {
		return way(ctx)
	})
	if err != nil {
		b.log(err, false)
		c.leftOpen(s)
	}
}

// anywhere makes an attempt at each address of each server, all at once, because one that does not
// answer would take all the time. It returns nil once one attempt has succeeded, else all faults.
// An attempt may fail because the session has moved to the server of another attempt; the last of
// them still succeeds.
func (b *sessionCloser) anywhere(ctx context.Context, servers []string) error {
	return anyOf(ctx, servers, func(ctx context.Context, server string) error {
		targets, err := hosts.Target{Server: server}.Resolved(ctx, b.core.cfg.resolve)
		if err != nil {
			return fmt.Errorf("%s: %w", server, err)
		}
		return anyOf(ctx, targets, func(ctx context.Context, t hosts.Target) error {
			if err := b.attempt(ctx, t); err != nil {
				return fmt.Errorf("%v: %w", t, err)
			}
			return nil
		})
	})
}

// anyOf calls try for each of the values at once, and returns when all calls have: nil if one has succeeded, which ends the
// others' context, else all faults.
func anyOf[T any](ctx context.Context, values []T, try func(context.Context, T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan error, len(values))
	for _, v := range values {
		go func() {
			err := ErrUnknownOutcome // unless try returns: a connection of the user's may end the goroutine
			defer func() { outcomes <- err }()
			if err = try(ctx, v); err == nil {
				cancel()
			}
		}()
	}
	var faults []error
	for range values {
		if err := <-outcomes; err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) < len(values) {
		return nil
	}
	return errors.Join(faults...)
}
