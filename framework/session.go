package framework

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"

	"github.com/docent-go/docent/framework/internal/tap"
)

// A session is one ZooKeeper session from its first connection to its end, on
// one wire. Its loop, run by the client's, is all that changes its state.
type session struct {
	core    *core
	tap     *tap.Tap
	hosts   *hosts
	wire    *wire
	watches *watches
	ctx     context.Context // ends with the session, with its cause
	cancel  context.CancelCauseFunc
	poke    chan struct{} // capacity 1: something below changed

	mu      sync.Mutex // guards following; never held across a request or a callback
	links   []linkEvent
	up      time.Time // when the wire got its connection, zero if it has none
	linked  bool      // that connection has all credentials and serves
	holds   map[*SessionHold]struct{}
	secured int    // holds that are secured
	server  string // that was dialled last
	authing bool   // credentials are on their way
	authed  int    // credentials that the wire has, and will send again by itself
	proving bool   // a sync is on its way for the holds' sake
	err     error
	held    int // holds that were lost with the session
}

func newSession(c *core, servers []string) (*session, error) {
	s := &session{
		core:  c,
		hosts: newHosts(servers),
		poke:  make(chan struct{}, 1),
		holds: make(map[*SessionHold]struct{}),
	}
	s.tap = tap.New(c.cfg.margin, s.wake)
	s.watches = newWatches()
	s.ctx, s.cancel = context.WithCancelCause(c.ctx)
	var err error
	s.wire, err = newWire(wireConfig{
		hosts:   s.hosts,
		timeout: c.cfg.sessionTimeout,
		request: c.cfg.maxRequest,
		reply:   c.cfg.maxReply,
		dial:    s.dial,
		logger:  c.log,
		onLink:  s.onLink,
		onNode:  s.watches.fire,
	})
	return s, err
}

func (s *session) id() int64 {
	id, _, _ := s.tap.Session()
	return id
}

func (s *session) timeout() time.Duration {
	_, _, timeout := s.tap.Session()
	return timeout
}

// dial connects to a server on behalf of the wire client.
func (s *session) dial(addr string) (net.Conn, error) {
	wait, renewed := s.hosts.pause()
	if timeout := s.timeout(); timeout > 0 && !s.core.refused() {
		wait = min(wait, timeout/pauseFraction)
	}
	if err := s.pause(wait, renewed); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.server = addr
	s.mu.Unlock()
	deadline := time.Now().Add(s.attemptLimit())
	ctx, cancel := context.WithDeadline(s.ctx, deadline)
	defer cancel()
	conn, err := s.core.cfg.connect(ctx, addr)
	if err != nil {
		if s.ended() == nil {
			s.core.fault(err)
		}
		return nil, err
	}
	wrapped, err := s.tap.Wrap(conn, deadline)
	if err != nil {
		return nil, err // not a *tap.Conn in a net.Conn, which would not be nil
	}
	return wrapped, nil
}

// attemptLimit bounds an attempt to connect.
func (s *session) attemptLimit() time.Duration {
	limit := s.core.cfg.connectTimeout
	if timeout := s.timeout(); timeout > 0 {
		limit = min(limit, timeout/connectFraction)
	}
	return limit
}

func (s *session) pause(d time.Duration, renewed <-chan struct{}) error {
	if d == 0 {
		return context.Cause(s.ctx)
	}
	if timeout := s.timeout(); timeout > 0 {
		d = min(d, timeout/pauseFraction) // a session is at stake
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-renewed:
	case <-s.ctx.Done():
	}
	return context.Cause(s.ctx)
}

// reconfigure changes the servers, and leaves the present one if it is not
// among them.
func (s *session) reconfigure(servers []string) {
	s.mu.Lock()
	current := s.server
	s.mu.Unlock()
	if s.hosts.replace(servers, current) {
		s.tap.CloseConn()
	}
}

// onLink runs on a goroutine of the wire client, so it only takes note.
func (s *session) onLink(ev linkEvent) {
	s.mu.Lock()
	s.links = append(s.links, ev)
	s.mu.Unlock()
	s.wake()
}

func (s *session) wake() {
	select {
	case s.poke <- struct{}{}:
	default: // the loop has yet to look, and will see this too
	}
}

// run follows the session to its end and returns what ended it.
func (s *session) run() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.poke:
		case <-timer.C:
		case <-s.ctx.Done():
			return s.end(context.Cause(s.ctx))
		}
		if err := s.follow(); err != nil {
			return s.end(err)
		}
		if wait := s.tend(time.Now()); wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// follow acts on what the wire and the tap reported, and returns what ended the
// session.
func (s *session) follow() error {
	s.mu.Lock()
	links := s.links
	s.links = nil
	s.mu.Unlock()
	for _, link := range links {
		switch link {
		case linkExpired:
			return ErrSessionExpired
		case linkDown:
			if fault := s.tap.Fault(); s.unlink() {
				s.core.transition(Suspended, s, fault)
			} else if fault != nil {
				s.core.fault(fault)
			}
		case linkUp:
			s.setUp(time.Now())
		}
	}
	if err := s.tap.Ended(); err != nil {
		return sessionError(err)
	}
	s.mu.Lock()
	waiting := !s.up.IsZero() && !s.linked
	s.mu.Unlock()
	if waiting {
		s.admit()
	}
	return nil
}

// admit puts a connection into service once the server has accepted all
// credentials on it.
func (s *session) admit() {
	accepted, refused := s.tap.Auth()
	switch {
	case refused:
		s.setUp(time.Time{})
		s.core.transition(AuthFailed, s, ErrAuthFailed)
		s.tap.CloseConn() // as the server does; the pause between attempts grows
	case accepted < len(s.core.cfg.auth):
		s.authenticate()
	default:
		s.mu.Lock()
		s.linked = true
		s.mu.Unlock()
		s.hosts.serves()
		s.watches.fireAll(EventReconnected) // before anybody sets one on this connection
		s.core.transition(Connected, s, nil)
	}
}

func (s *session) setUp(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = at
}

// unlink takes note that the connection is gone, and reports whether it served.
func (s *session) unlink() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.linked
	s.up, s.linked = time.Time{}, false
	return was
}

// end ends the session, for the first cause that is given, and returns that.
// Holds are lost, and who asked for it is told, before anything else happens.
func (s *session) end(cause error) error {
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	s.err = cause
	serving := s.linked
	s.up, s.linked = time.Time{}, false
	s.held = len(s.holds)
	var told []func(error)
	for h := range s.holds {
		h.err = cause
		close(h.lost)
		if h.onLost != nil {
			told = append(told, h.onLost)
		}
	}
	clear(s.holds)
	s.secured = 0
	s.mu.Unlock()
	for _, tell := range told {
		tell(cause)
	}
	s.cancel(cause)
	s.tap.End(cause)
	s.hosts.end()
	if !serving {
		s.tap.CloseConn() // a handshake that hangs would delay the wire's end
	}
	s.watches.fireAll(EventSessionEnded)
	s.wake()
	return cause
}

// heldAtEnd returns how many holds were lost with the session.
func (s *session) heldAtEnd() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// serverAddr returns the server that was dialled last, as "host:port".
func (s *session) serverAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// ended returns what ended the session, or nil. It takes no lock of the
// session's, so it may be called with the core's.
func (s *session) ended() error { return context.Cause(s.ctx) }

// retire ends what is left of the session's wire. It blocks for up to two seconds.
func (s *session) retire() { s.wire.close(s.tap.CloseConn) }

// sessionError translates what the tap says of a session's end.
func sessionError(err error) error {
	switch {
	case ctxerr.Is(err, tap.ErrExpired):
		return ErrSessionExpired
	case ctxerr.Is(err, tap.ErrSubstituted):
		return fmt.Errorf("%w: %s", ErrSessionReplaced, err.Error())
	}
	return err
}
