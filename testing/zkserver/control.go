package zkserver

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

var (
	// ErrNoSession is returned by Server.Expire when no session has the id.
	ErrNoSession = errors.New("zkserver: no such session")

	// ErrNoQuorum is returned by Server.Expire while no leader has a majority of the
	// front ends.
	ErrNoQuorum = errors.New("zkserver: no leader with a quorum")

	// ErrNoNode is returned by Server.SetNextSequence when no node has the path.
	ErrNoNode = errors.New("zkserver: no such node")
)

// A SessionInfo describes a session.
type SessionInfo struct {
	ID         int64         // as clients know it
	Timeout    time.Duration // as negotiated
	Ephemerals []string      // the paths of its ephemeral nodes, sorted
}

// Sessions returns the sessions that the leader has, in order of their ids.
func (s *Server) Sessions() []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []SessionInfo
	for id, sess := range s.sessions {
		list = append(list, SessionInfo{ID: id, Timeout: sess.timeout, Ephemerals: s.tree.ephemeralsOf(id)})
	}
	slices.SortFunc(list, func(a, b SessionInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Expire ends a session as if the server had received nothing from its client for its timeout.
// When Expire returns, every front end that is up to date has deleted the ephemeral znodes, fired
// the watches on them, and closed the connection. It returns ErrNoSession if there is no such
// session, and ErrNoQuorum if there is no quorum to decide.
//
// The client learns of its expiry only afterwards, as a stopped process does. Another client may
// hold the session's locks before: two holders at once are then no fault of the lock. To see a client abandon its
// session in time by its own clock, cut its network instead: [Server.Refuse] and [Server.Cut], or package zkproxy
// for one client of several.
func (s *Server) Expire(id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.decides() {
		return fmt.Errorf("zkserver: expire session %#x: %w", id, ErrNoQuorum)
	}
	sess := s.sessions[id]
	if sess == nil {
		return fmt.Errorf("zkserver: expire session %#x: %w", id, ErrNoSession)
	}
	s.endSession(sess)
	return nil
}

// Freeze stops the whole server, as SIGSTOP does a standalone one: all front ends are
// frozen, and no session expires.
func (s *Server) Freeze() {
	s.setFrozen(true)
	for _, f := range s.frontends {
		f.Freeze()
	}
}

// Thaw ends what Freeze began. Sessions that are overdue expire first; what clients
// have sent meanwhile is answered then.
func (s *Server) Thaw() {
	s.setFrozen(false)
	for _, f := range s.frontends {
		f.Thaw()
	}
}

func (s *Server) setFrozen(frozen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
	if !frozen && s.decides() {
		s.catchUp()
	}
}

// catchUp carries out what came due while the server could not decide.
func (s *Server) catchUp() {
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		s.expireIfDue(s.sessions[id])
	}
	s.reaper.runLocked()
}

// Refuse makes all front ends refuse new connections.
func (s *Server) Refuse() {
	for _, f := range s.frontends {
		f.Refuse()
	}
}

// Accept ends what Refuse began.
func (s *Server) Accept() {
	for _, f := range s.frontends {
		f.Accept()
	}
}

// Cut closes all connections. Their sessions live on.
func (s *Server) Cut() {
	for _, f := range s.frontends {
		f.Cut()
	}
}

// ShiftClock sets the server's wall clock forward by d, or back if d is negative. The times of
// transactions follow it, and with them the age of TTL nodes. Sessions don't, because ZooKeeper
// counts their timeouts by a monotonic clock.
func (s *Server) ShiftClock(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shift += d
	s.reaper.armLocked(time.Now()) // what is due by the new time goes at the next interval's end
}

// SetNextSequence sets the number that the next sequential child of path gets. It
// returns ErrNoNode if there is no such node.
func (s *Server) SetNextSequence(path string, next int32) error {
	return s.setStat("next sequence", path, func(st *proto.Stat) { st.Cversion = next })
}

// SetVersion sets the version of the data of the node at path. It returns ErrNoNode if there is no
// such node.
func (s *Server) SetVersion(path string, version int32) error {
	return s.setStat("version", path, func(st *proto.Stat) { st.Version = version })
}

func (s *Server) setStat(what, path string, set func(*proto.Stat)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.nodes[path]
	if n == nil {
		return fmt.Errorf("zkserver: set %s of %s: %w", what, path, ErrNoNode)
	}
	set(&n.stat)
	for _, f := range s.frontends {
		if behind := f.view().nodes[path]; behind != nil {
			set(&behind.stat)
		}
	}
	return nil
}

// Paths returns the paths of all nodes, sorted, those of ZooKeeper's own among them.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.paths()
}

// Watches returns how many watches clients have set and not yet been told of, on all
// front ends.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, f := range s.frontends {
		total += f.watches.count()
	}
	return total
}
