package zkserver

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/fault"
)

// A Server is a ZooKeeper in this process. Make one with [Run], or with
// [Start] and end it with Close. All methods may be called concurrently.
type Server struct {
	config    config       // immutable
	rules     *fault.Rules // immutable
	started   time.Time    // immutable
	frontends []*Frontend  // immutable

	running sync.WaitGroup // every goroutine of the server but its timers'

	mu          sync.Mutex // guards the following and all state of sessions, front ends and connections; never held across network or waiting
	closed      bool
	frozen      bool
	leader      *Frontend          // nil while none leads, and without WithLeader
	quorate     bool               // whether it had a quorum when that was last looked at
	outstanding []*commit          // proposed and not yet committed, oldest first
	records     map[string]*record // of the nodes that it changes
	commitTimer *time.Timer
	tree        *tree         // the leader's
	zxid        int64         // the latest given
	shift       time.Duration // of the wall clock: see ShiftClock
	sessions    map[int64]*session
	lastSession int64
	reaper      *reaper
}

// Start starts a server. It returns at once; clients can connect when it has
// returned. If options are out of their bounds it returns all faults joined and
// starts nothing.
//
// Called in a testing/synctest bubble, the server lives in that bubble: its time is
// the bubble's, and it must be closed before the bubble's function returns.
func Start(opts ...Option) (*Server, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s := &Server{
		config:   c,
		rules:    &fault.Rules{},
		started:  now,
		tree:     newTree(c.wrap),
		sessions: map[int64]*session{},
		// As in ZooKeeper: the server's number, then the time, so that two
		// servers don't give the same id.
		lastSession: 1<<56 | int64(uint64(now.UnixMilli())<<24>>8),
	}
	s.records = map[string]*record{}
	s.commitTimer = newTimer(s.commitTimerFired)
	s.reaper = newReaper(s, c.reapInterval)
	for i := range c.frontends {
		s.frontends = append(s.frontends, newFrontend(s, i))
	}
	if c.frontends > 1 {
		s.zxid = 1 << 32
		s.tree.zxid = s.zxid
	}
	if c.leader != noLeader {
		s.leader, s.quorate = s.frontends[c.leader], true
	}
	return s, nil
}

// newTimer returns a timer that calls fn on a goroutine of its own, once Reset has set it.
func newTimer(fn func()) *time.Timer {
	t := time.AfterFunc(time.Hour, fn)
	t.Stop()
	return t
}

// Close ends the server: listeners and connections are closed, sessions forgotten.
// It returns when all its goroutines have ended. Further calls do nothing but wait.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, sess := range s.sessions {
		sess.timer.Stop()
	}
	s.reaper.timer.Stop()
	s.commitTimer.Stop()
	for _, f := range s.frontends {
		f.timer.Stop()
		f.limit.Stop()
		f.lone.Stop()
		for c := range f.conns {
			c.kill()
		}
		for _, l := range f.listeners {
			l.Close()
		}
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// Rules returns the fault rules that the server consults for every request, reply
// and event.
func (s *Server) Rules() *fault.Rules { return s.rules }

// Frontend returns front end number i, from 0. It panics if there is none.
func (s *Server) Frontend(i int) *Frontend { return s.frontends[i] }

// Frontends returns all front ends.
func (s *Server) Frontends() []*Frontend { return slices.Clone(s.frontends) }

// Addr returns the addresses of all front ends, separated by commas, for a client that dials with
// [Server.Dial].
func (s *Server) Addr() string {
	addrs := make([]string, len(s.frontends))
	for i, f := range s.frontends {
		addrs[i] = f.Addr()
	}
	return strings.Join(addrs, ",")
}

// Run starts a server for the test, as [Start] does, and closes it when the test has ended. If
// options are out of their bounds, Run fails the test with all faults.
//
// In a testing/synctest bubble, pass the bubble's t: then the server is closed within the bubble.
// Clean-up functions that are registered after Run, such as a client's Close, are called before.
func Run(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
