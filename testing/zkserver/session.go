package zkserver

import (
	"crypto/rand"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A session is a client's session as the leader knows it, guarded by Server.mu.
type session struct {
	id       int64
	password []byte // immutable
	timeout  time.Duration
	owner    *Frontend   // where the client was last seen to open or resume it; nil if not since the election
	timer    *time.Timer // runs to the deadline at the latest; nil in a reign
	closing  bool        // a leader without a quorum would end it

	latest    time.Time // when the leader last received something from the client
	touched   time.Time // a sign of life that a front end has yet to pass on; zero if none
	touchedBy *Frontend // that front end
}

// newSession makes a session, whose clock starts with track.
func (s *Server) newSession(timeout time.Duration, owner *Frontend) *session {
	s.lastSession++
	sess := &session{
		id:       s.lastSession,
		password: make([]byte, proto.PasswordSize),
		timeout:  timeout,
		owner:    owner,
		latest:   time.Now(),
	}
	rand.Read(sess.password) // never fails
	return sess
}

// track counts the session's time, once it has been committed.
func (s *Server) track(sess *session) {
	sess.timer = time.AfterFunc(sess.timeout, func() { s.deadlinePassed(sess) })
	s.sessions[sess.id] = sess
}

// resumeSession moves the session to a connection of f, with the timeout that the
// client has negotiated there.
func (s *Server) resumeSession(sess *session, timeout time.Duration, f *Frontend) {
	sess.owner = f
	sess.timeout = timeout
	sess.latest = time.Now()
	if sess.timer != nil {
		sess.timer.Reset(timeout)
	}
}

// touch notes that the client is alive. A front end that is not the whole server
// passes it on twice in a tick only, and not at all while it can't.
func (s *Server) touch(sess *session, f *Frontend) {
	now := time.Now()
	switch {
	case !f.receivesFromLeader():
	case f.leads() || len(s.frontends) == 1:
		if !f.lapsed(sess) {
			sess.latest = now
		}
	default:
		s.settle(sess, now)
		if sess.touched.IsZero() {
			sess.touched, sess.touchedBy = now, f
		}
	}
}

// settle counts a sign of life that has been passed on by now.
func (s *Server) settle(sess *session, now time.Time) {
	if sess.touched.IsZero() {
		return
	}
	half := s.config.tick / 2
	passedOn := s.started.Add(sess.touched.Sub(s.started).Truncate(half) + half)
	if passedOn.After(now) {
		return
	}
	if passedOn.After(sess.latest) {
		sess.latest = passedOn
	}
	sess.touched = time.Time{}
}

// forgetTouches loses the signs of life that f has not passed on.
func (s *Server) forgetTouches(f *Frontend) {
	now := time.Now()
	for _, sess := range s.sessions {
		s.settle(sess, now)
		if sess.touchedBy == f {
			sess.touched = time.Time{}
		}
	}
}

// deadlinePassed is called by the session's timer, on a goroutine of its own. It returns at once
// if the server or the session has ended meanwhile.
func (s *Server) deadlinePassed(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireIfDue(sess)
}

// expireIfDue ends the session if its timeout has passed since the client's last sign of life, and
// otherwise sets the timer again. Signs of life don't touch the timer, so they cost nothing. A
// server that is frozen or can't decide does neither: see Server.Thaw and Server.reviewQuorum.
func (s *Server) expireIfDue(sess *session) {
	if s.closed || s.frozen || !s.decides() || s.sessions[sess.id] != sess {
		return
	}
	now := time.Now()
	s.settle(sess, now)
	if left := sess.latest.Add(sess.timeout).Sub(now); left > 0 && !sess.closing {
		sess.timer.Reset(left)
		return
	}
	s.endSession(sess)
}

// claim reports whether a front end may ask things for the session: whether the client
// was last seen there. After an election it is the first that asks.
func (sess *session) claim(f *Frontend) bool {
	if sess.owner == nil {
		sess.owner = f
	}
	return sess.owner == f
}

// negotiate returns the session timeout that a client gets if it asks for the given one.
func (s *Server) negotiate(milliseconds int32) time.Duration {
	asked := time.Duration(milliseconds) * time.Millisecond
	return min(max(asked, s.config.minTimeout), s.config.maxTimeout)
}
