package framework

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/usercall"
)

// A session is one ZooKeeper session from its first connection to its end, on one wire. Only its
// loop changes its state; the client's loop runs it.
type session struct {
	core      *core
	readsOnly bool // its servers have no quorum (readonly.go); immutable
	tap       *tap.Tap
	hosts     *hosts.List
	wire      *zkconn.Conn
	watches   *watchreg.Registry
	ctx       context.Context // ends with the session; has its cause
	cancel    context.CancelCauseFunc
	poke      chan struct{} // capacity 1: something below changed
	over      chan struct{} // closed by end when all holds have been notified

	marginTold bool // only for run: it has logged that the lease margin does not fit

	mu sync.Mutex // guards following; never held across a request or a callback
	connState
	heldState
	sent sentRequests
	err  error
}

// A connState is a session's connection. It is guarded by session.mu.
type connState struct {
	links  []link
	up     time.Time               // when the wire got its connection, zero if it has none
	linked bool                    // that connection serves
	heard  bool                    // the server has answered the probe on this connection
	target hosts.Target            // of the latest connection
	leave  context.CancelCauseFunc // ends the attempt to connect that is under way
}

// A heldState has the holds on a session. It is guarded by session.mu.
type heldState struct {
	holds     map[*SessionHold]struct{}
	secured   int       // holds that are secured
	heldSince time.Time // when the first of the present holds was taken
	held      int       // holds that were lost with the session
	beaten    time.Time // when the latest heartbeat of this connection was sent
}

// sentRequests are the session's own requests that are under way.
type sentRequests struct {
	heartbeat, probe, touch bool
	tree                    bool // a recursive watch is being set or removed
}

// newSession begins to connect. If readsOnly is true, it connects only to read-only servers.
func newSession(c *core, list serverList, readsOnly bool) (*session, error) {
	s := &session{
		core:      c,
		readsOnly: readsOnly,
		hosts:     hosts.New(list.first(), list.fallback(), c.cfg.resolve),
		poke:      make(chan struct{}, 1),
		over:      make(chan struct{}),
		heldState: heldState{holds: make(map[*SessionHold]struct{})},
	}
	seen := &c.zxid
	if readsOnly {
		seen = new(atomic.Int64) // such a server may know transactions that were never committed
	}
	s.tap = tap.New(tap.Config{
		MarginFor: c.cfg.margin, Zxid: seen, MaxReply: c.cfg.maxReply, ReadOnly: readsOnly,
	})
	s.watches = watchreg.New(s.arm, func(fn func()) { go usercall.Guard(c.log, "Watch.AfterFire", fn) })
	s.ctx, s.cancel = context.WithCancelCause(c.ctx)
	conn, err := zkconn.New(zkconn.Config{
		Hosts:   s.hosts,
		Host:    hosts.WireHost,
		Timeout: c.cfg.sessionTimeout,
		Request: c.cfg.maxRequest,
		Reply:   c.cfg.maxReply,
		Dial:    s.dial,
		Logger:  c.log,
		OnLink:  s.onLink,
		OnNode:  s.onNode,
	})
	s.wire = conn
	return s, err
}

// ID returns the session's number at the ensemble.
func (s *session) ID() int64 {
	id, _, _ := s.tap.Session()
	return id
}

func (s *session) timeout() time.Duration {
	_, _, timeout := s.tap.Session()
	return timeout
}

// onNode runs on a goroutine of the wire client, in the connection's order.
func (s *session) onNode(node zkconn.NodeEvent, path string) {
	event := watchreg.Event(node)
	s.watches.Fire(event, path)
	if s.readsOnly || !s.core.trees.fire(EventKind(event), path) {
		return
	}
	if dir, name := SplitPath(path); name != "" && event != watchreg.Changed { // see tap.Tap's trees
		s.watches.Fire(watchreg.ChildrenChanged, dir)
	}
}

func (s *session) wake() {
	select {
	case s.poke <- struct{}{}:
	default: // the loop has not looked yet, and will see this change too
	}
}

// run runs the session to its end and returns the cause of the end.
func (s *session) run() error {
	s.wake() // to look for due work first
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for {
		select {
		case <-s.poke:
		case <-timer.C:
		case <-s.ctx.Done():
			return s.finish(context.Cause(s.ctx))
		}
		if err := s.follow(); err != nil {
			return s.finish(err)
		}
		if wait := s.tend(time.Now()); wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// ServerAddr returns the server of the latest connection, as "host:port".
func (s *session) ServerAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.target.Server
}

// reached returns the target of the latest connection.
func (s *session) reached() hosts.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.target
}
