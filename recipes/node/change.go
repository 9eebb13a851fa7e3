package node

import (
	"errors"
	"fmt"
	"sync"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/recipes/internal/membership"
)

// A Change is what has happened to the znode of a [Node].
type Change struct {
	Kind ChangeKind
	Path string // of the znode; "" before the first creation
	// Err is why the znode does not exist; nil for Made and Overwritten. It is [framework.ErrNoNode] if
	// another client deleted the znode, and wraps [framework.ErrNotConnected] or
	// [framework.ErrSessionEnded] if the client lost its connection or its session.
	Err error
}

// A ChangeKind says what has happened.
type ChangeKind int

// The kinds of changes.
const (
	Made        ChangeKind = iota + 1 // the znode exists with the latest data, maybe again
	Away                              // the znode does not exist, or may not: the connection is away
	Taken                             // another client's znode is at the path
	Overwritten                       // another client has written to the znode
)

// String returns the kind's name, as in "Made".
func (k ChangeKind) String() string {
	if k < Made || k > Overwritten {
		return fmt.Sprintf("ChangeKind(%d)", int(k))
	}
	return [...]string{"Made", "Away", "Taken", "Overwritten"}[k-1]
}

// A znodeState is what a Node knows of its znode, and what it is to write there.
type znodeState struct {
	tel     instruments
	changes *listeners.Queued[Change]
	poke    chan struct{} // capacity 1: the keeper has something to do

	mu        sync.Mutex         // guards following; never held across a request or a callback
	want      membership.Content // the latest data
	written   int64              // number of the content that the znode holds; 0 for none
	znode     string             // its path; "" before the first creation
	exists    bool               // as far as is known
	tried     int64              // number of the content of the latest attempt
	problem   error              // that the attempt ended with
	permanent bool               // the problem does not pass by itself
	reason    error              // of the latest failure, of an attempt or the connection; nil after a success
	last      Change
	kind      string        // of last.Err: see zktel.ErrorType
	news      chan struct{} // closed and replaced when one of these has changed
}

func newZnodeState(tel instruments, data []byte) *znodeState {
	return &znodeState{
		tel: tel, changes: listeners.NewQueued[Change](tel.panicked),
		poke: make(chan struct{}, 1), news: make(chan struct{}),
		want: membership.Content{Data: append([]byte{}, data...), Number: 1},
	}
}

// latest returns the latest data.
func (s *znodeState) latest() membership.Content {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.want
}

// attempted records what an attempt to write the content to the znode at path came to.
func (s *znodeState) attempted(want membership.Content, path string, err error) {
	cond := conditionOf(err)
	s.mu.Lock()
	s.tried, s.problem, s.reason = want.Number, err, err
	s.permanent = err != nil && !cond.passes
	var was transition
	switch {
	case err == nil:
		s.written, s.znode = want.Number, path
		if !s.exists {
			was = s.transitionLocked(Made, cond)
		}
	case cond.taken:
		was = s.transitionLocked(Taken, cond)
	case !s.exists:
		was = s.transitionLocked(Away, cond)
	}
	close(s.news)
	s.news = make(chan struct{})
	s.mu.Unlock()
	s.report(was)
}

// gone notes that the znode does not exist, or may not.
func (s *znodeState) gone(why error) {
	cond := conditionOf(why)
	s.mu.Lock()
	var was transition
	if s.exists {
		was = s.transitionLocked(Away, cond)
	}
	s.mu.Unlock()
	s.report(was)
}

// overwritten notes that another client has written to the znode.
func (s *znodeState) overwritten() {
	s.mu.Lock()
	was := s.transitionLocked(Overwritten, condition{})
	s.mu.Unlock()
	s.report(was)
}

// A condition is what is to be known of an error. It is read without mu, because the error may be of a
// type of the user's: a dialer's, for example.
type condition struct {
	err    error
	kind   string // see zktel.ErrorType
	taken  bool
	passes bool // by itself
	closed bool
}

func conditionOf(err error) condition {
	if err == nil {
		return condition{}
	}
	return condition{err, zktel.ErrorType(err), errors.Is(err, membership.ErrTaken), passing(err), errors.Is(err, framework.ErrClosed)}
}

// A transition is a change that listeners are notified of, for the user's meter and log. The zero transition is none.
type transition struct {
	kind    ChangeKind
	cond    condition
	flipped bool // the znode exists, and did not, or the other way round
}

// transitionLocked notifies of a change; of an obstacle only once. It needs mu. Its caller has to call report
// with what it returns, without mu.
func (s *znodeState) transitionLocked(kind ChangeKind, cond condition) transition {
	if cond.err != nil && kind == s.last.Kind && cond.kind == s.kind {
		return transition{}
	}
	s.last, s.kind = Change{kind, s.znode, cond.err}, cond.kind
	exists := kind.exists()
	flipped := exists != s.exists
	s.exists = exists
	s.changes.Notify(s.last)
	return transition{kind, cond, flipped}
}

// report tells the user's meter and log of the change.
func (s *znodeState) report(was transition) {
	if was.kind == 0 {
		return
	}
	if was.flipped {
		s.tel.exists(was.kind.exists())
	}
	c := was.cond
	s.tel.changed(was.kind, c.err, was.kind == Taken || c.err != nil && !c.passes && !c.closed)
}

// exists reports whether the znode exists after the change.
func (k ChangeKind) exists() bool { return k == Made || k == Overwritten }

// observe follows the client's states: without a connection, the znode may not exist.
func (s *znodeState) observe(change framework.StateChange) {
	why := framework.ErrNotConnected
	switch change.To {
	case framework.Connected:
		s.wake()
		return
	case framework.Lost, framework.Closed:
		why = framework.ErrSessionEnded
	}
	why = fmt.Errorf("%w (%v)", why, change.To)
	if change.Cause != nil {
		why = fmt.Errorf("%w: %w", why, change.Cause)
	}
	s.mu.Lock()
	s.reason = why
	s.mu.Unlock()
	s.gone(why)
}

// wake makes the keeper check whether there is something to do.
func (s *znodeState) wake() {
	select {
	case s.poke <- struct{}{}:
	default: // the keeper has yet to look, and will see this too
	}
}

// passing reports whether the condition that err is for passes by itself.
func passing(err error) bool {
	return framework.Retryable(err) || errors.Is(err, framework.ErrSessionEnded)
}
