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
	reason  error              // of the latest failure, of an attempt or the connection; nil after a success
	last    Change
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried, r.problem, r.reason = want.Number, err, err
	switch {
	case err == nil:
		r.written, r.znode = want.Number, path
		if !r.exists {
			r.notify(Made, nil)
		}
	case errors.Is(err, membership.ErrTaken):
		r.notify(Taken, err)
	case !r.exists:
		r.notify(Away, err)
	}
	close(r.news)
	r.news = make(chan struct{})
}

// gone notes that the znode does not exist, or may not.
func (r *record) gone(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.exists {
		r.notify(Away, why)
	}
}

// overwritten notes that another client has written to the znode.
func (r *record) overwritten() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notify(Overwritten, nil)
}

// notify notifies of a change; of an obstacle only once. It needs mu.
func (r *record) notify(kind ChangeKind, err error) {
	if err != nil && kind == r.last.Kind && zktel.ErrorType(err) == zktel.ErrorType(r.last.Err) {
		return
	}
	r.last = Change{kind, r.znode, err}
	if exists := kind == Made || kind == Overwritten; exists != r.exists {
		r.exists = exists
		r.tel.exists(exists)
	}
	r.tel.changed(kind, err, kind == Taken || err != nil && !passing(err) && !errors.Is(err, framework.ErrClosed))
	r.changes.Notify(r.last)
}

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
