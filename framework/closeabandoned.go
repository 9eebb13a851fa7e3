package framework

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/usercall"
)

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
	if c.current() != s || !errors.Is(cause, ErrSessionDeadline) && !errors.Is(cause, ErrSessionReplaced) {
		return // a session that never served has no znodes
	}
	over := make(chan struct{})
	c.mu.Lock()
	if c.abandoned == nil {
		c.abandoned = make(map[int64]chan struct{})
	}
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
	return callError(ctx, "await session end", "", c.core.awaitSessionEnd(ctx, session))
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
// timeout, and a margin, to expire the session. It also ends within zkconn.Grace of Close, which
// waits for it. After Close it makes one attempt if there is a connection.
func (b *sessionCloser) run() {
	<-b.session.Context().Done() // all holds of the session have been notified
	b.wait(b.core.cfg.margin(b.session.Timeout()))
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.core.ctx))
	defer cancel()
	stop := context.AfterFunc(b.core.ctx, func() { time.AfterFunc(zkconn.Grace, cancel) })
	defer stop()
	var limit time.Time
	for attempt := 0; b.core.awaitUp(); attempt++ {
		if limit.IsZero() {
			timeout := b.session.Timeout()
			limit = time.Now().Add(timeout + b.core.cfg.margin(timeout))
		}
		closing := b.core.ctx.Err() != nil
		err := b.attempt(ctx, b.server(attempt))
		expired := time.Now().After(limit)
		b.log(err, expired)
		if err == nil || closing || ctx.Err() != nil || expired {
			return
		}
		b.pause(attempt)
	}
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
	return tap.CloseSession(ctx, conn, exchange, b.core.credentials.all(), id, password)
}

// pause waits before the next attempt; Close ends it.
func (b *sessionCloser) pause(attempt int) {
	limit := min(minClosePause<<min(attempt, 10), maxClosePause)
	b.wait(limit/2 + rand.N(limit/2))
}

// wait returns after d, or when Close has begun.
func (b *sessionCloser) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.core.ctx.Done():
	}
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
		zap.String(zktel.AttrErrorType, ErrorType(err)), zap.Error(err))
}
