package waitqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/queuenode"
)

// errGone means that the attempt's node is no longer in the queue.
var errGone = errors.New("waitqueue: own node is gone")

// An Attempt is one contender's way through the queue: it creates a node in the client's session,
// waits, and is granted or withdraws. If its session ends, or another client deletes its node, it
// queues again. One goroutine at a time may drive it. If that goroutine fails, another one may
// take the attempt over.
type Attempt struct {
	queue *Queue
	kind  string
	data  func() []byte

	Observer Observer // of its waiting; may be nil. The goroutine that drives may set it

	write    *Grant // of a downgrade; nil if the attempt queues as others do
	reported int    // how many contenders ahead OnPosition was called with last; -1 for none

	client *framework.Client // bound to the hold's session
	hold   *framework.SessionHold
	key    listingKey // set with hold

	node   string         // path of the node; "" if there is none
	self   queuenode.Node // the node
	stat   framework.Stat
	breaks int64    // of the connection when the grant was certain
	listed []string // what was listed along with the creation of the node; nil once used
	fresh  bool     // the node has not been listed yet
	warned bool     // of contenders of another kind that came later

	admitted bool          // a listing showed the node, and no contender of another kind ahead of it
	took     time.Duration // from the call that created the node to its return
	waiter   *waiter       // since it began to wait
	rounds   pace.Pace     // of restarts and listings
}

// An Observer is notified of an attempt's waiting, by the goroutine that drives the attempt.
type Observer interface {
	// Waits is called with the number of contenders ahead, after each listing that shows some.
	Waits(ahead int)
	// Behind is called after that with the data of the predecessor's znode, which the request
	// that sets the watch has read.
	Behind(data []byte)
}

// NewAttempt returns an attempt that has not entered the queue yet. When its node is created, data
// returns the node's data.
func (q *Queue) NewAttempt(kind string, data func() []byte) *Attempt {
	return &Attempt{queue: q, kind: kind, data: data, reported: -1, rounds: pace.Rounds()}
}

// Run drives the attempt until it is granted, ctx ends or a request fails. With an error the
// attempt keeps what it has, its node included: Run again, or Withdraw.
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
			a.ReportGranted()
			return a.grant(), nil
		case !Restartable(err):
			return nil, err
		}
		a.restart(err)
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
	}
}

// Try waits for no other contender: it returns a grant, or [ErrBusy] with its node deleted. If it
// finds a predecessor before it has a node, it does not create one. If its session ends, or
// another client deletes its node, Try starts again.
func (a *Attempt) Try(ctx context.Context) (*Grant, error) {
	for {
		grant, err := a.try(ctx)
		if !Restartable(err) {
			return grant, err
		}
		a.restart(err)
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return nil, err
		}
	}
}

func (a *Attempt) try(ctx context.Context) (*Grant, error) {
	if a.write == nil && a.node == "" {
		if err := a.checkFree(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	pos, err := a.position(ctx)
	switch {
	case err != nil:
		return nil, err
	case pos.predecessor != "":
		return nil, a.Cancel(ctx)
	}
	if err := a.secure(ctx); err != nil {
		return nil, err
	}
	return a.grant(), nil
}

// ReportGranted reports that no contender is ahead of the attempt any more.
func (a *Attempt) ReportGranted() { a.report(0) }

// report calls OnPosition if the number of contenders ahead has changed.
func (a *Attempt) report(ahead int) {
	if a.queue.OnPosition != nil && ahead != a.reported {
		a.reported = ahead
		a.queue.OnPosition(ahead)
	}
}

// Withdraw ends the attempt. Its node is deleted in the background, until it is gone or its
// session has ended.
func (a *Attempt) Withdraw() {
	if a.node != "" {
		a.client.Discard(a.node)
	}
	a.leave()
}

// Cancel deletes the node of an attempt that has a predecessor, and returns ErrBusy. It waits for
// the deletion, because the next Try must not find this node. If the deletion is not confirmed,
// the error says why.
func (a *Attempt) Cancel(ctx context.Context) error {
	err := a.client.Delete(ctx, a.node, framework.Guaranteed())
	a.leave()
	if err == nil || errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrSessionEnded) {
		return ErrBusy
	}
	return fmt.Errorf("%w: %w", ErrBusy, err)
}

// Restartable reports whether an attempt that failed with err has to enter the queue again: its
// session has ended, or another client deleted its node.
func Restartable(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, framework.ErrSessionEnded)
}

// restart leaves the queue because of err, so that the attempt can enter it again. A node that does
// not contend may exist nevertheless: that of a downgrade whose write node is gone.
func (a *Attempt) restart(err error) {
	if errors.Is(err, errGone) {
		a.Withdraw()
	} else {
		a.leave()
	}
}

// leave forgets the node and the session.
func (a *Attempt) leave() {
	if own := a.endWait(); own != nil {
		own.Close()
	}
	if a.node != "" {
		clientAttemptsOf(a.client).remove(a.self.Name, false)
	}
	if a.hold != nil {
		a.hold.Release()
	}
	a.hold, a.client = nil, nil
	a.node, a.listed, a.write = "", nil, nil
}

// endWait closes the attempt's watches, but for the watch on the own node, which it returns if there
// is one.
func (a *Attempt) endWait() (own *framework.Watch) {
	if a.waiter == nil {
		return nil
	}
	own, a.waiter = a.waiter.end(), nil
	return own
}
