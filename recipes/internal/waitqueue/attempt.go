package waitqueue

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// An Attempt is one contender's way through the queue: it gets a node in the
// client's session, waits, and is granted or withdraws. When its session ends or
// somebody deletes its node, it queues again. One goroutine at a time may drive
// it; another may take over where one gave up.
type Attempt struct {
	queue *Queue
	kind  string
	data  func() []byte

	Observer Observer // of its waiting; nil for nobody. Whoever drives may set it

	beside *Grant // to enter beside; nil if the attempt queues as others do
	place  int    // that was told last; -1 for none

	client *framework.Client // bound to the hold's session
	hold   *framework.SessionHold
	key    listingKey // set with hold

	node   string // path of the node; "" if there is none
	self   Node   // the node
	stat   framework.Stat
	breaks int64    // of the connection when the grant was certain
	listed []string // what was listed along with the creation of the node; nil once used
	fresh  bool     // the node has not been listed yet
	wait   *waiting // since it began to wait
}

// NewAttempt returns an attempt that has not entered the queue yet. data is
// called for what its node is to hold, when that is made.
func (q *Queue) NewAttempt(kind string, data func() []byte) *Attempt {
	return &Attempt{queue: q, kind: kind, data: data, place: -1}
}

// Entered reports whether the attempt has a node. It is for who drives it.
func (a *Attempt) Entered() bool { return a.node != "" }

// Run drives the attempt until it is granted, ctx ends or there is an error.
// With an error the attempt keeps what it has, its place included: Run again, or
// Withdraw.
func (a *Attempt) Run(ctx context.Context) (*Grant, error) {
	for {
		if err := a.enter(ctx); err != nil {
			return nil, err
		}
		err := a.await(ctx)
		if err == nil {
			err = a.secure(ctx)
		}
		switch {
		case err == nil:
			a.tell(0)
			return a.grant(), nil
		case Anew(err):
			a.restart(err)
		default:
			return nil, err
		}
	}
}

// Try makes one attempt and waits for nobody: it is granted, or returns
// [ErrBusy] with its node gone. It does not even enter where somebody else
// can be seen to be there. An attempt whose session ends or whose node somebody
// deletes begins anew.
func (a *Attempt) Try(ctx context.Context) (*Grant, error) {
	for {
		grant, err := a.try(ctx)
		if !Anew(err) {
			return grant, err
		}
		a.restart(err)
	}
}

func (a *Attempt) try(ctx context.Context) (*Grant, error) {
	if a.beside == nil && a.node == "" {
		if err := a.lookAhead(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	pos, err := a.look(ctx)
	switch {
	case err != nil:
		return nil, err
	case pos.ahead != "":
		return nil, a.GiveUp(ctx)
	}
	if err := a.secure(ctx); err != nil {
		return nil, err
	}
	return a.grant(), nil
}

// lookAhead returns ErrBusy if there is somebody that the attempt would have to
// wait for. What it sees at first may be old: the client's server may lag behind
// the one that a release went to. So it looks again before it refuses. That does
// not help where the server is the leader itself, which answers a sync before it has applied
// all that it has committed: then it refuses who comes a moment after a release.
func (a *Attempt) lookAhead(ctx context.Context) error {
	for _, synced := range []bool{false, true} {
		if synced {
			if err := a.queue.Client.Sync(ctx, a.queue.Dir); err != nil {
				return err
			}
		}
		nodes, err := a.queue.List(ctx)
		if err != nil {
			return err
		}
		if own := len(nodes); a.queue.Ahead(append(nodes, a.last(nodes)), own, own) < 0 {
			return nil
		}
	}
	return ErrBusy
}

// last returns what the attempt's node would be if it came behind all others.
func (a *Attempt) last(nodes []Node) Node {
	n := Node{Kind: a.kind}
	if len(nodes) > 0 {
		n.Sequence = nodes[len(nodes)-1].Sequence + 1
	}
	return n
}

// tell tells the attempt's place in the queue, if it is another than before.
func (a *Attempt) tell(place int) {
	if a.queue.Place != nil && place != a.place {
		a.place = place
		a.queue.Place(place)
	}
}

// Withdraw gives the attempt up: its node is deleted in the background until it
// is gone or its session has ended.
func (a *Attempt) Withdraw() {
	if a.node != "" {
		a.client.Discard(a.node)
	}
	a.leave()
}

// restart leaves the queue because of err, to enter it again. A node that is not
// seen to contend may stand all the same, as where it stands beside another that
// has gone.
func (a *Attempt) restart(err error) {
	if ctxerr.Is(err, errGone) {
		a.Withdraw()
	} else {
		a.leave()
	}
}

// leave forgets the node and the session.
func (a *Attempt) leave() {
	if a.wait != nil {
		if own := a.wait.end(); own != nil {
			own.Close()
		}
	}
	if a.hold != nil {
		a.hold.Release()
	}
	a.hold, a.client = nil, nil
	a.node, a.listed, a.beside, a.wait = "", nil, nil, nil
}

// secure makes the grant certain. Breaks of the connection count from then on, also while a
// function of the user's is told of the grant.
func (a *Attempt) secure(ctx context.Context) error {
	err := a.hold.Secure(ctx)
	a.breaks = a.hold.Breaks()
	return err
}

// grant turns the attempt into what it was for.
func (a *Attempt) grant() *Grant {
	g := &Grant{
		Znode:  hold.Znode{Client: a.client, Session: a.hold, Path: a.node, Stat: a.stat, Breaks: a.breaks},
		Beside: a.beside,
	}
	if w := a.wait; w != nil {
		g.Own = w.end()
		a.wait = nil
	}
	return g
}

// GiveUp deletes the node that came second, and returns ErrBusy. The next Try is
// not to find this one's node, so it waits for the deletion; what keeps that from being
// confirmed is added to the error.
func (a *Attempt) GiveUp(ctx context.Context) error {
	err := a.client.Delete(ctx, a.node, framework.Guaranteed())
	a.leave()
	if err == nil || ctxerr.Is(err, framework.ErrNoNode) || ctxerr.Is(err, framework.ErrSessionEnded) {
		return ErrBusy
	}
	return fmt.Errorf("%w: %w", ErrBusy, err)
}
