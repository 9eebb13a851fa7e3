package permits

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// An attempt is one call's acquire of n permits. It waits until it is the first in the queue, and
// creates a znode for each permit. When the directory has no more children than there are permits,
// it leaves the queue. While it is the first, no contender behind it touches the permits. One
// goroutine uses it.
type attempt struct {
	pool  *Pool
	n     int
	data  []byte
	acq   *telemetry.Acquire // telemetry of the call
	queue *waitqueue.Attempt

	turn   *waitqueue.Grant // the first place in the queue; nil before
	nodes  []*hold.Znode    // of the permits, granted or not; nil if there is none
	own    *framework.Watch // on the queue's znode, from the start of the wait
	number numberWatch
	long   waitqueue.LongWait // for the holders

	pathNames    []string // children of the semaphore's path, listed after nodes were created; nil for none
	kindsChecked bool     // there was no contender of another kind ahead among them

	rounds pace.Pace // of restarts and listings
}

// A numberWatch is the number of permits as the attempt knows it.
type numberWatch struct {
	permits int
	watch   *framework.Watch // nil if the number never changes, or is not known
	known   bool
}

// isKnown reports whether the number is the one of the latest reply: a server notifies of a change
// before it replies from the new state.
func (n *numberWatch) isKnown() bool { return n.known && (n.watch == nil || n.watch.Valid()) }

func (p *Pool) newAttempt(n int, data []byte, acq *telemetry.Acquire) *attempt {
	a := &attempt{pool: p, n: n, data: data, acq: acq, rounds: pace.Rounds()}
	a.long.Report = p.LongWait
	turns := p.turns()
	turns.OnPosition, turns.OnLongWait = p.Position, p.LongWait
	a.queue = turns.NewAttempt(turnKind, func() []byte { return data })
	a.queue.Telemetry = acq
	return a
}

// errTurnLost means that another client deleted the attempt's znode in the queue.
var errTurnLost = errtype.New("own node is gone from the queue", errtype.Other)

// restarts reports whether an attempt that failed with err has to start again: its session ended,
// or another client deleted its znode in the queue.
func restarts(err error) bool {
	return errors.Is(err, errTurnLost) || errors.Is(err, framework.ErrSessionEnded)
}

// run continues until the permits are granted, ctx ends or there is an error.
func (a *attempt) run(ctx context.Context) error {
	if a.pool.takesAtOnce(a.n) {
		err := a.takeAtOnce(ctx)
		if !errors.Is(err, errContended) && !restarts(err) {
			return err
		}
		a.withdraw()
	}
	return a.repeat(ctx, a.takeInTurn)
}

// repeat starts again if the session ends, or if another client deletes the znode in the queue.
func (a *attempt) repeat(ctx context.Context, once func(context.Context) error) error {
	for {
		err := once(ctx)
		if !restarts(err) {
			return err
		}
		a.withdraw()
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return err
		}
	}
}

// waitError returns the WaitError of an attempt that ctx ended. The holders are ahead of the whole
// queue.
func (a *attempt) waitError(ctx context.Context, err error) error {
	p := a.pool
	if err != nil && a.turn != nil && !a.outOfTurn() {
		return contender.WaitError(ctx, p.Client, p.Path, 1, nil, err)
	}
	return contender.WaitErrorOf(ctx, p.turns(), p.Path, a.queue, err)
}

// errContended means that the attempt can't have the permit at once.
var errContended = errtype.New("there is another contender", errtype.Other)

// takeAtOnce creates the permit's znode without a place in the queue. It returns nil, with the permit, if
// the listings behind the create show no other contender: no other permit, and no place in the queue. If
// they do, it returns errContended, and the attempt has to withdraw and to queue. See the package's
// comment.
func (a *attempt) takeAtOnce(ctx context.Context) error {
	session, err := a.pool.Client.HoldSession(ctx)
	if err != nil {
		return err
	}
	a.turn = &waitqueue.Grant{Znode: hold.Znode{Client: a.pool.Client.InSession(session.Session()), Session: session}}
	var names, turns []string
	a.nodes, names, a.pathNames, err = a.addNodes(ctx, 1, framework.ListTo(a.pool.turns().Dir, &turns))
	if err != nil {
		return err
	}
	alone := len(names) == 1 && a.among(names) && turns != nil && len(queuenode.Sort(turns, turnKind)) == 0
	if !alone {
		return errContended
	}
	switch behind, err := a.checkKinds(ctx, names); {
	case err != nil:
		return err
	case behind != "":
		return errContended
	}
	if err := session.Secure(ctx); err != nil {
		return err
	}
	a.countBreaks()
	a.pool.free.Store(true)
	a.queue.Report(0)
	return session.Err()
}

// outOfTurn reports whether the attempt holds the session by takeAtOnce: it has no place in the queue.
func (a *attempt) outOfTurn() bool { return a.turn != nil && a.turn.Path == "" }

// takeInTurn acquires the permits after the contenders ahead.
func (a *attempt) takeInTurn(ctx context.Context) (err error) {
	if a.turn, err = a.queue.Run(ctx); err != nil {
		return err
	}
	if err = a.take(ctx, false); err == nil {
		a.queue.Report(0)
		err = a.turn.Session.Err()
	}
	return err
}

// take creates the attempt's znodes and returns nil when there are permits for all children, by the number of
// permits that was valid when these were listed. With try it waits for no other contender, and returns ErrHeld.
func (a *attempt) take(ctx context.Context, try bool) error {
	names, err := a.createPermits(ctx)
	for {
		if try && err != nil { // before the pause, which may end with ctx: the error may say more
			return err
		}
		if err := a.rounds.Wait(ctx, 1); err != nil {
			return err
		}
		switch {
		case err != nil && (ctx.Err() != nil || !waitqueue.Disconnected(err)):
			return err
		case err != nil:
			names, err = a.awaitChange(ctx)
		case !a.among(names): // another client deleted some of the znodes
			a.discardNodes()
			names, err = a.createPermits(ctx)
		case !a.kindsChecked:
			names, err = a.awaitOtherKind(ctx, names, try)
		case !a.number.isKnown(): // a greater one must not refuse a try, nor a smaller one grant
			names, err = a.createPermits(ctx)
		case len(names) > a.number.permits && try:
			return a.cancel(ctx)
		case len(names) > a.number.permits:
			a.queue.Report(1)
			a.observe(ctx, names)
			names, err = a.awaitChange(ctx)
		default:
			a.countBreaks()
			a.pool.free.Store(a.turn.Own == nil && a.own == nil) // it has not waited
			return a.turn.Session.Err()
		}
	}
}

// awaitOtherKind checks whether a contender of another kind was first. If that one is to go, it waits for that, and
// refuses a try.
func (a *attempt) awaitOtherKind(ctx context.Context, names []string, try bool) ([]string, error) {
	behind, err := a.checkKinds(ctx, names)
	if err != nil || behind == "" {
		return names, err
	}
	if try {
		return names, a.cancel(ctx)
	}
	if err := a.awaitGone(ctx, behind); err != nil {
		return names, err
	}
	return a.createPermits(ctx)
}

// countBreaks makes breaks of the connection count from the grant on, also while a function of the
// user's is notified of it.
func (a *attempt) countBreaks() {
	for _, node := range a.nodes {
		node.Breaks = a.turn.Session.Breaks()
	}
}

// try makes one attempt without a wait. If a listing shows too few free permits, it does not enter
// the queue. A listing that refuses has everything that was committed before the call.
func (a *attempt) try(ctx context.Context) error { return a.repeat(ctx, a.tryOnce) }

func (a *attempt) tryOnce(ctx context.Context) error {
	free, err := a.looksFree(ctx)
	if err == nil && !free { // the server may lag behind a release that is confirmed
		if err = a.pool.Client.Ready(ctx); err == nil {
			a.forgetNumber()
			free, err = a.looksFree(ctx)
		}
	}
	switch {
	case err != nil:
		return err
	case !free:
		return lease.ErrHeld
	}
	a.turn, err = a.queue.Try(ctx)
	if err != nil {
		return contender.HeldError(err)
	}
	return a.take(ctx, true)
}

// looksFree reports whether the client's server shows enough free permits.
func (a *attempt) looksFree(ctx context.Context) (bool, error) {
	names, _, err := a.pool.Client.Children(ctx, LeasesDir(a.pool.Path))
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return false, err
	}
	err = a.watchNumber(ctx, a.pool.Client)
	return len(names)+a.n <= a.number.permits, err
}

// cancel deletes the attempt's znodes, for which there are no permits, and returns ErrHeld. It waits
// for the deletions, because the next TryAcquire must not find these znodes. If they are not
// confirmed, their error is joined.
func (a *attempt) cancel(ctx context.Context) error {
	err := deleteNodes(ctx, a.nodes)
	a.nodes = nil
	if over(err) {
		err = nil
	}
	busy := a.queue.Cancel(ctx)
	if err != nil {
		busy = fmt.Errorf("%w: %w", busy, err)
	}
	return contender.HeldError(busy)
}

// withdraw deletes the attempt's znodes in the background.
func (a *attempt) withdraw() {
	a.discardNodes()
	closeWatch(a.own)
	closeWatch(a.number.watch)
	if a.outOfTurn() {
		a.turn.Session.Release()
	}
	a.queue.Withdraw()
	a.turn, a.own, a.number = nil, nil, numberWatch{}
}

// discardNodes deletes the permits' znodes in the background.
func (a *attempt) discardNodes() {
	for _, node := range a.nodes {
		node.Discard()
	}
	a.nodes = nil
}

func closeWatch(w *framework.Watch) {
	if w != nil {
		w.Close()
	}
}
