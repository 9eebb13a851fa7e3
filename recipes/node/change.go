package node

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/keeper"
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

// settle notes what an attempt to write the content to the znode at path came to.
func (n *Node) settle(want keeper.Content, path string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tried, n.problem = want.Number, err
	switch {
	case err == nil:
		n.written, n.znode = want.Number, path
		if !n.standing {
			n.tell(Made, nil)
		}
	case errors.Is(err, ErrTaken):
		n.tell(Taken, err)
	case !n.standing:
		n.tell(Away, err)
	}
	close(n.news)
	n.news = make(chan struct{})
}

// gone notes that the znode does not exist, or may not.
func (n *Node) gone(why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.standing {
		n.tell(Away, why)
	}
}

// overwritten notes that another client has written to the znode.
func (n *Node) overwritten() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell(Overwritten, nil)
}

// tell notifies of a change; of an obstacle only once. It needs mu.
func (n *Node) tell(kind ChangeKind, err error) {
	if err != nil && kind == n.last.Kind && framework.ErrorType(err) == framework.ErrorType(n.last.Err) {
		return
	}
	n.last = Change{kind, n.znode, err}
	if standing := kind == Made || kind == Overwritten; standing != n.standing {
		n.standing = standing
		n.tel.Stands(standing)
	}
	n.tel.Changed(kind, err, kind == Taken || err != nil && !passing(err))
	n.changes.Notify(n.last)
}

// observe follows the client's states: without a connection, the znode may not exist.
func (n *Node) observe(change framework.StateChange) {
	switch change.To {
	case framework.Connected:
		n.wake()
	case framework.Lost, framework.Closed:
		n.gone(fmt.Errorf("%w (%v): %w", framework.ErrSessionEnded, change.To, change.Cause))
	default:
		n.gone(fmt.Errorf("%w (%v): %w", framework.ErrNotConnected, change.To, change.Cause))
	}
}

// wake has the keeper look whether there is something to do.
func (n *Node) wake() {
	select {
	case n.poke <- struct{}{}:
	default: // the keeper has yet to look, and will see this too
	}
}

// passing reports whether the condition that err is for passes by itself.
func passing(err error) bool {
	return framework.Retryable(err) || errors.Is(err, framework.ErrSessionEnded)
}
