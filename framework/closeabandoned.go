package framework

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/otelzk"
	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/framework/zktel"
)

// Bounds of the pause between attempts to close a session that was given up. It
// doubles with each; a part of it is drawn at random.
const (
	minClosePause = 50 * time.Millisecond
	maxClosePause = 2 * time.Second
)

// A sessionCloser closes a session that the client gave up while the ensemble may still
// have it. Its ephemeral znodes, locks among them, would otherwise stand for up to a
// session timeout more, and for longer where frames that the network held up arrive
// late and renew it. The connection for that is the sessionCloser's own and carries nothing
// else; the lease clock does not see it.
type sessionCloser struct {
	core    *core
	session *session // which has ended
}

// closeAbandoned closes s at the ensemble, in the background, unless the ensemble itself said
// that s is over, or s is closed in order by the client's Close. The caller is run,
// after whatever it has to tell of the end of s.
func (c *core) closeAbandoned(s *session, cause error) {
	if c.current() != s || !errors.Is(cause, ErrSessionDeadline) && !errors.Is(cause, ErrSessionReplaced) {
		return // one that never served has no znodes
	}
	c.wg.Go((&sessionCloser{core: c, session: s}).run)
}

// run tries until the session is over. It begins a lease margin after the end, not
// before the ensemble could have expired the session by itself: whoever lost a lock has
// that long to stop before the next one gets it, unless Close comes first. It rests while the client has no connection:
// servers that are in trouble are not to be dialled by two loops of each client.
// core.run starts it; it ends by itself when the ensemble has had a session timeout,
// and a margin, to expire the session, and within zkconn.Grace of Close, which waits
// for it and leaves it one attempt where there is a connection.
func (b *sessionCloser) run() {
	<-b.session.ctx.Done() // whoever lost something with the session has been told
	b.wait(b.core.cfg.margin(b.session.timeout()))
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.core.ctx))
	defer cancel()
	stop := context.AfterFunc(b.core.ctx, func() { time.AfterFunc(zkconn.Grace, cancel) })
	defer stop()
	var limit time.Time
	for attempt := 0; b.core.awaitUp(); attempt++ {
		if limit.IsZero() {
			timeout := b.session.timeout()
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

// server returns which server to try: at first the one that the client has just
// reached, then by turns any of them, and that one.
func (b *sessionCloser) server(attempt int) hosts.Target {
	if s := b.core.current(); attempt%2 == 0 && s != nil {
		return s.reached()
	}
	return hosts.Target{Server: hosts.Shuffled(b.core.currentServers().first())[0]}
}

// attempt makes one attempt at one server, of the length that an attempt to
// reconnect has.
func (b *sessionCloser) attempt(ctx context.Context, t hosts.Target) error {
	ctx, cancel := context.WithTimeout(ctx, b.session.attemptLimit())
	defer cancel()
	conn, err := b.core.cfg.connect(ctx, t)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // what it was for is known by then
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	exchange, err := b.core.cfg.startSASL(ctx, t.Server)
	if err != nil {
		return err
	}
	id, password, _ := b.session.tap.Session()
	return tap.CloseSession(conn, exchange, b.core.credentials.all(), id, password)
}

// pause waits before the next attempt, until Close at most.
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

// log tells of an attempt: at level warn of one that failed and was the last because
// the ensemble has had its time.
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
