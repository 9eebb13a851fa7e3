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

// A record is what a Node knows of its znode, and what it is to write there.
type record struct {
	tel     instruments
	changes *listeners.Queued[Change]
	poke    chan struct{} // capacity 1: the keeper has something to do

	mu      sync.Mutex         // guards following; never held across a request or a callback
	want    membership.Content // the latest data
	written int64              // number of the content that the znode holds; 0 for none
	znode   string             // its path; "" before the first creation
	exists  bool               // as far as is known
	tried   int64              // number of the content of the latest attempt
	problem error              // that the attempt ended with
	lasts   bool               // the problem does not pass by itself
	reason  error              // of the latest failure, of an attempt or the connection; nil after a success
	last    Change
	kind    string        // of last.Err: see zktel.ErrorType
	news    chan struct{} // closed and replaced when one of these has changed
}

func newRecord(tel instruments, data []byte) *record {
	return &record{
		tel: tel, changes: listeners.NewQueued[Change](tel.panicked),
		poke: make(chan struct{}, 1), news: make(chan struct{}),
		want: membership.Content{Data: append([]byte{}, data...), Number: 1},
	}
}

// latest returns the latest data.
func (r *record) latest() membership.Content {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.want
}

// attempted records what an attempt to write the content to the znode at path came to.
func (r *record) attempted(want membership.Content, path string, err error) {
	cond := conditionOf(err)
	r.mu.Lock()
	r.tried, r.problem, r.reason = want.Number, err, err
	r.lasts = err != nil && !cond.passes
	var was turn
	switch {
	case err == nil:
		r.written, r.znode = want.Number, path
		if !r.exists {
			was = r.turnLocked(Made, cond)
		}
	case cond.taken:
		was = r.turnLocked(Taken, cond)
	case !r.exists:
		was = r.turnLocked(Away, cond)
	}
	close(r.news)
	r.news = make(chan struct{})
	r.mu.Unlock()
	r.tell(was)
}

// gone notes that the znode does not exist, or may not.
func (r *record) gone(why error) {
	cond := conditionOf(why)
	r.mu.Lock()
	var was turn
	if r.exists {
		was = r.turnLocked(Away, cond)
	}
	r.mu.Unlock()
	r.tell(was)
}

// overwritten notes that another client has written to the znode.
func (r *record) overwritten() {
	r.mu.Lock()
	was := r.turnLocked(Overwritten, condition{})
	r.mu.Unlock()
	r.tell(was)
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

// A turn is a change that listeners are notified of, for the user's meter and log. The zero turn is none.
type turn struct {
	kind    ChangeKind
	cond    condition
	flipped bool // the znode exists, and did not, or the other way round
}

// turnLocked notifies of a change; of an obstacle only once. It needs mu. Its caller has to call tell
// with what it returns, without mu.
func (r *record) turnLocked(kind ChangeKind, cond condition) turn {
	if cond.err != nil && kind == r.last.Kind && cond.kind == r.kind {
		return turn{}
	}
	r.last, r.kind = Change{kind, r.znode, cond.err}, cond.kind
	exists := kind.exists()
	flipped := exists != r.exists
	r.exists = exists
	r.changes.Notify(r.last)
	return turn{kind, cond, flipped}
}

// tell tells the user's meter and log of the change.
func (r *record) tell(was turn) {
	if was.kind == 0 {
		return
	}
	if was.flipped {
		r.tel.exists(was.kind.exists())
	}
	c := was.cond
	r.tel.changed(was.kind, c.err, was.kind == Taken || c.err != nil && !c.passes && !c.closed)
}

// exists reports whether the znode exists after the change.
func (k ChangeKind) exists() bool { return k == Made || k == Overwritten }

// observe follows the client's states: without a connection, the znode may not exist.
func (r *record) observe(change framework.StateChange) {
	why := framework.ErrNotConnected
	switch change.To {
	case framework.Connected:
		r.wake()
		return
	case framework.Lost, framework.Closed:
		why = framework.ErrSessionEnded
	}
	why = fmt.Errorf("%w (%v)", why, change.To)
	if change.Cause != nil {
		why = fmt.Errorf("%w: %w", why, change.Cause)
	}
	r.mu.Lock()
	r.reason = why
	r.mu.Unlock()
	r.gone(why)
}

// wake has the keeper look whether there is something to do.
func (r *record) wake() {
	select {
	case r.poke <- struct{}{}:
	default: // the keeper has yet to look, and will see this too
	}
}

// passing reports whether the condition that err is for passes by itself.
func passing(err error) bool {
	return framework.Retryable(err) || errors.Is(err, framework.ErrSessionEnded)
}
