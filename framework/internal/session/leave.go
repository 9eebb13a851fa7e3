package session

import (
	"errors"
	"time"
)

// Causes for which a client leaves a server, or ends an attempt to connect, without a fault.
var (
	errRemoved = errors.New("the server is no longer among those that the client goes to")
	errRenewed = errors.New("the client goes to other servers now")
)

// A session that leaves its server by its own decision first awaits the replies to its callers'
// requests: without them, the outcome of a write would be unknown. Meanwhile the client is Suspended,
// so that no further requests follow, and the session's own requests keep the lease clock fresh.
const (
	leaveFraction = 8           // it waits for T/8 …
	maxLeaveTime  = time.Second // … or as long, if that is shorter
)

// A departure is a session's connection that is being left. It is guarded by Session.mu.
type departure struct {
	requests int       // of callers, and attempts, without an outcome
	by       time.Time // when the connection is closed at the latest; zero if it is not being left
	closing  bool      // the connection is being closed
}

// SetServers changes the servers. It ends an attempt to connect, and leaves the present server if
// that is not among the new servers.
func (s *Session) SetServers(servers, fallback []string) {
	s.cfg.Servers.Replace(servers, fallback)
	s.mu.Lock()
	t, leave := s.target, s.leave
	s.mu.Unlock()
	if leave != nil {
		leave(errRenewed)
	}
	if !s.cfg.Servers.Has(t) {
		s.depart()
	}
}

// LeaveUnless leaves the present server unless it is one of servers.
func (s *Session) LeaveUnless(servers []string) {
	if !s.Target().Among(servers) {
		s.depart()
	}
}

// depart leaves the present server, at once if the connection does not serve.
func (s *Session) depart() {
	s.mu.Lock()
	serves := s.serving && !s.cfg.ReadOnly
	if serves && s.departure.by.IsZero() {
		s.departure.by = time.Now().Add(min(s.Timeout()/leaveFraction, maxLeaveTime))
	}
	s.mu.Unlock()
	if !serves {
		s.wire.CloseConn(errRemoved)
		return
	}
	s.Wake()
}

// departs reports whether the present connection is being left.
func (s *Session) departs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.departure.by.IsZero()
}

// tendDepartureLocked closes the connection that is being left once no caller awaits a reply on it, or
// when its time has passed. It needs mu.
func (s *Session) tendDepartureLocked(due *soonest) {
	d := &s.departure
	switch {
	case d.by.IsZero() || d.closing:
	case d.requests == 0 || !d.by.After(due.now):
		d.closing = true
		s.leaving.Store(true)
		due.cut = errRemoved
	default:
		due.at(d.by)
	}
}

// departedLocked records that the connection has ended. It needs mu.
func (d *departure) departedLocked() { d.by, d.closing = time.Time{}, false }

// Serves reports whether the session has not ended and has a connection for requests.
func (s *Session) Serves() bool { return s.Ended() == nil && s.wire.Open() && !s.leaving.Load() }

// Enter is called before a caller's attempt at an operation, which may take several requests, and before each
// request is sent. If no connection serves, or the connection is being closed, Enter returns false: a later one
// has to carry it.
func (s *Session) Enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serving || s.departure.closing {
		return false
	}
	s.departure.requests++
	return true
}

// Leave follows an Enter that returned true, when the attempt is over or the request has its outcome.
func (s *Session) Leave() {
	s.mu.Lock()
	s.departure.requests--
	last := s.departure.requests == 0 && !s.departure.by.IsZero()
	s.mu.Unlock()
	if last {
		s.Wake()
	}
}
