package framework

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/zktel"
)

// WithReadOnly lets the client read from a server that has lost its quorum, while no attempt finds
// a server that has a quorum. The client is then [ReadOnly]. Get, Exists, Children, ACL, GetEach,
// WhoAmI, Watch and WatchEach get replies, which may be arbitrarily old. All other operations, such
// as Sync and HoldSession, fail with [ErrReadOnly] at once. Views by InSession wait for their own
// session. A Watch that was set while the client is ReadOnly fires with [EventReconnected] when the
// connection ends.
//
// The servers need readonlymode.enabled, and localSessionsEnabled from ZooKeeper 3.7 on. The
// client's session is not affected. The client keeps looking for a server with a quorum, at
// intervals that grow to two seconds. It abandons the session at its deadline, as it does without a
// connection. The default is not to read from such servers.
func WithReadOnly() Option {
	return optionFunc(func(cfg *config) { cfg.readOnly = true })
}

// Bounds of the time between the beginnings of two ReadOnly states. It doubles with each, so that
// the state does not flap if a server keeps closing connections.
const (
	minReadOnlyPause = time.Second
	maxReadOnlyPause = time.Minute
)

// A readOnly is what a client knows of connections to servers without a quorum. Such a connection
// has a session of its own at its server, which ends with the connection. It is never the client's
// session.
type readOnly struct {
	seek chan struct{} // capacity 1: attempts at all servers have failed

	// Guarded by core.mu.
	session *session.Session // the running session; may be nil
	serves  bool             // it has a connection to a read-only server
	instead State            // the state without that connection

	warned atomic.Bool

	// Only for readOnlyLoop, which runs the session, too.
	entered time.Time
	pause   time.Duration
}

// readOnlyLoop keeps a read-only connection while there is no other connection. NewClient starts
// it; Close ends it and waits for it.
func (c *core) readOnlyLoop() {
	for {
		select {
		case <-c.readOnly.seek:
		case <-c.ctx.Done():
			return
		}
		if time.Since(c.readOnly.entered) < c.readOnly.pause {
			continue // the next failure wakes the loop again
		}
		s, err := c.beginReadOnly()
		if err != nil { // the wire client refused its arguments: a bug
			c.log.Error("cannot start a session", zap.Error(err))
			return
		}
		c.leaveReadOnly(s, s.Run())
		_ = c.closeByOwn(s) // such a session is its server's alone
		s.Retire()
	}
}

// beginReadOnly starts a session that looks for a read-only server. It ends at once if the
// client has found a server with a quorum meanwhile.
func (c *core) beginReadOnly() (*session.Session, error) {
	servers := c.currentServers()
	s, err := c.newSession(servers, true)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.readOnly.session = s
	wanted, now := c.wantsReadOnlyLocked(), c.servers
	c.mu.Unlock()
	if !wanted {
		s.Cancel(session.ErrQuorum)
	}
	if !servers.equal(now) {
		s.SetServers(now.first(), now.fallback())
	}
	return s, nil
}

func (c *core) wantsReadOnlyLocked() bool {
	return c.state == Connecting || c.state == Suspended || c.state == Lost
}

// enterReadOnly records that a read-only server serves the session, whose loop calls it.
func (c *core) enterReadOnly() {
	c.mu.Lock()
	c.readOnly.serves = true
	c.mu.Unlock()
	if !c.showReadOnly() {
		return
	}
	r, now := &c.readOnly, time.Now()
	if now.Sub(r.entered) > 2*maxReadOnlyPause { // longer than any pause
		r.pause = minReadOnlyPause / 2
	}
	r.entered, r.pause = now, min(2*r.pause, maxReadOnlyPause)
}

// showReadOnly makes the client ReadOnly if it has only a read-only connection.
func (c *core) showReadOnly() bool {
	return c.transitionIf(func() (State, *session.Session, bool) {
		r := &c.readOnly
		if r.session == nil || !r.serves || r.session.Ended() != nil || !c.wantsReadOnlyLocked() {
			return 0, nil, false
		}
		r.instead = Connecting
		if c.state == Suspended {
			r.instead = Suspended
		}
		return ReadOnly, c.session.UnlessEnded(), true
	}, nil)
}

// leaveReadOnly records that s, a read-only session, has ended.
func (c *core) leaveReadOnly(s *session.Session, cause error) {
	c.transitionIf(func() (State, *session.Session, bool) {
		c.readOnly.session, c.readOnly.serves = nil, false
		return c.readOnly.instead, c.session.UnlessEnded(), c.state == ReadOnly && c.ctx.Err() == nil
	}, cause)
	c.log.Debug("read-only session ended", zap.String(zktel.AttrServerAddress, s.ServerAddr()), zap.Error(cause))
}

// endReadOnly ends the read-only session, if there is one. It does not wait.
func (c *core) endReadOnly() {
	c.mu.Lock()
	s := c.readOnly.session
	c.mu.Unlock()
	if s != nil {
		s.Cancel(session.ErrQuorum)
	}
}

// readOnlyFailed records that an attempt to connect to a read-only server failed. If the servers
// are not configured for read-only connections, it logs that.
func (c *core) readOnlyFailed(server string, err error) {
	level := zap.DebugLevel
	if errors.Is(err, wire.ErrNoLocalSession) && !c.readOnly.warned.Swap(true) {
		level = zap.WarnLevel
	}
	c.log.Log(level, "cannot connect to a read-only server", append(serverFields(server), zap.Error(err))...)
}

// awaitServer returns a connected session. While the client is ReadOnly, that is the read-only
// session if reads is true; if reads is false, awaitServer returns an error.
func (c *core) awaitServer(ctx context.Context, reads bool) (*session.Session, error) {
	var found *session.Session
	err := c.await(ctx, func() (bool, error) {
		found = c.session
		if c.state != ReadOnly {
			return c.state == Connected && found.Serves(), nil
		}
		if !reads {
			return false, ErrReadOnly
		}
		found = c.readOnly.session
		return found != nil && found.Serves(), nil
	})
	return found, err
}
