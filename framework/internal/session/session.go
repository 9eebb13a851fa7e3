package session

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/framework/internal/hosts"
	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/usercall"
)

// A Session is one ZooKeeper session. Only its loop, [Session.Run], changes its state. The methods
// may be called concurrently.
type Session struct {
	cfg     Config
	tap     *tap.Tap
	wire    *zkconn.Conn
	watches *watchreg.Registry
	client  context.Context // ends when the client is closed
	ctx     context.Context // ends with the session; has its cause
	cancel  context.CancelCauseFunc
	poke    chan struct{} // capacity 1: something below changed
	over    chan struct{} // closed by end when all holds have been notified

	marginTold bool // only for Run: it has logged that the lease margin does not fit

	mu sync.Mutex // guards following; never held across a request or a callback
	connState
	heldState
	sent sentRequests
	err  error
}

// A connState is a session's connection. It is guarded by Session.mu.
type connState struct {
	links  []link
	up     time.Time               // when the wire got its connection, zero if it has none
	linked bool                    // that connection serves
	heard  bool                    // the server has answered the probe on this connection
	target hosts.Target            // of the latest connection
	leave  context.CancelCauseFunc // ends the attempt to connect that is under way
}

// A heldState has the holds on a session. It is guarded by Session.mu.
type heldState struct {
	holds     map[*Hold]struct{}
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

// New begins to connect. ctx ends when the client is closed, and ends the session.
func New(ctx context.Context, cfg Config) (*Session, error) {
	s := &Session{
		cfg:       cfg,
		client:    ctx,
		poke:      make(chan struct{}, 1),
		over:      make(chan struct{}),
		heldState: heldState{holds: make(map[*Hold]struct{})},
	}
	s.tap = tap.New(tap.Config{
		MarginFor: cfg.Margin, Zxid: cfg.Zxid, MaxReply: cfg.MaxReply, ReadOnly: cfg.ReadOnly,
	})
	s.watches = watchreg.New(s.arm, func(fn func()) { go usercall.Guard(cfg.Log, "Watch.AfterFire", fn) })
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	conn, err := zkconn.New(zkconn.Config{
		Hosts:   cfg.Servers,
		Host:    hosts.WireHost,
		Timeout: cfg.Timeout,
		Request: cfg.MaxRequest,
		Reply:   cfg.MaxReply,
		Dial:    s.dial,
		Logger:  cfg.Log,
		OnLink:  s.onLink,
		OnNode:  s.onNode,
	})
	s.wire = conn
	return s, err
}

// ID returns the session's number at the ensemble; 0 before the first connection, and for nil.
func (s *Session) ID() int64 {
	if s == nil {
		return 0
	}
	id, _, _ := s.tap.Session()
	return id
}

// Timeout returns the negotiated session timeout; 0 before the first connection.
func (s *Session) Timeout() time.Duration {
	_, _, timeout := s.tap.Session()
	return timeout
}

// Secret returns what it takes to resume, and so to end, the session.
func (s *Session) Secret() (id int64, password []byte) {
	id, password, _ = s.tap.Session()
	return id, password
}

// Zxid returns the highest transaction id of all replies.
func (s *Session) Zxid() int64 { return s.cfg.Zxid.Load() }

// Deadline returns the moment until which the session is certainly valid.
func (s *Session) Deadline() time.Time { return s.tap.Deadline() }

// Context returns a context that ends with the session, before its holds have been notified. Its
// cause is the reason.
func (s *Session) Context() context.Context { return s.ctx }

// Wire returns the connection for requests.
func (s *Session) Wire() *zkconn.Conn { return s.wire }

// Tap returns what follows requests on the connection.
func (s *Session) Tap() *tap.Tap { return s.tap }

// Watches returns the session's watches.
func (s *Session) Watches() *watchreg.Registry { return s.watches }

// arm makes the next read of the key set a watch, until disarm is called.
func (s *Session) arm(key watchreg.Key) (disarm func()) {
	read := tap.ReadData
	switch key.Kind {
	case watchreg.Exists:
		read = tap.ReadExists
	case watchreg.Children:
		read = tap.ReadChildren
	}
	return s.tap.Arm(read, key.Path)
}

// onNode runs on a goroutine of the wire client, in the connection's order.
func (s *Session) onNode(node zkconn.NodeEvent, path string) {
	event := watchreg.Event(node)
	s.watches.Fire(event, path)
	if s.cfg.Trees == nil {
		return
	}
	if parent := s.cfg.Trees.Fire(event, path); parent != "" { // see tap.Tap's trees
		s.watches.Fire(watchreg.ChildrenChanged, parent)
	}
}

// Wake makes the loop look for work.
func (s *Session) Wake() {
	select {
	case s.poke <- struct{}{}:
	default: // the loop has not looked yet, and will see this change too
	}
}

// Run runs the session to its end and returns the cause of the end.
func (s *Session) Run() error {
	s.Wake() // to look for due work first
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
func (s *Session) ServerAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.target.Server
}

// Target returns the target of the latest connection.
func (s *Session) Target() hosts.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.target
}
