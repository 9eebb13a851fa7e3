package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A semaphoreAttempt is one call's way to a semaphore mutex. It gets its turn in
// the queue, puts its znode among the leases, waits until that is the only one,
// and leaves the queue. While it has its turn, nobody behind it touches the
// leases. It is used by one goroutine.
type semaphoreAttempt struct {
	mutex *SemaphoreMutex
	data  []byte
	seen  *telemetry.Acquire // what telemetry follows of the call
	queue *waitqueue.Attempt
	place int // that was told last

	turn  *waitqueue.Grant // of the queue; nil while there is none
	grant *waitqueue.Grant // the znode among the leases, granted or not; nil if there is none
	own   *framework.Watch // on the queue's znode, since it began to wait
}

func (m *SemaphoreMutex) newAttempt(ctx context.Context, seen *telemetry.Acquire) *semaphoreAttempt {
	a := &semaphoreAttempt{mutex: m, data: m.cfg.nodeData(shown(ctx), seen), seen: seen, place: -1}
	turns := *m.turns
	if m.cfg.position != nil {
		turns.OnPosition = func(ahead int) {
			if ahead > 0 { // else it has its turn, and looks for a holder next
				a.tell(ahead + 1)
			}
		}
	}
	a.queue = turns.NewAttempt(mutexKind, func() []byte { return a.data })
	seen.Beyond(1)
	a.queue.Observer = contender.ObserverOf(seen)
	return a
}

// tell tells how many stand ahead, if that is another number than before.
func (a *semaphoreAttempt) tell(place int) {
	if fn := a.mutex.cfg.position; fn != nil && place != a.place {
		a.place = place
		fn(place)
	}
}

// errTurnLost means that somebody deleted the attempt's znode in the queue.
var errTurnLost = errors.New("own node is gone from the queue")

// run goes on until the lease is granted, ctx ends or there is an error. When
// the session ends, or somebody deletes the znode in the queue, it begins anew.
func (a *semaphoreAttempt) run(ctx context.Context) error {
	for {
		err := a.takeInTurn(ctx)
		if !errors.Is(err, errTurnLost) && !errors.Is(err, framework.ErrSessionEnded) {
			return a.waitError(ctx, err)
		}
		a.withdraw()
	}
}

// waitError returns the WaitError of an attempt that ctx ended. The holder is ahead of the whole queue.
func (a *semaphoreAttempt) waitError(ctx context.Context, err error) error {
	m := a.mutex
	if err != nil && a.turn != nil {
		return contender.WaitError(ctx, m.turns.Client, m.path, 1, nil, err)
	}
	return contender.WaitErrorOf(ctx, m.turns, m.path, a.queue, 1, err)
}

// takeInTurn takes the lock after whoever is ahead.
func (a *semaphoreAttempt) takeInTurn(ctx context.Context) (err error) {
	if a.turn, err = a.queue.Run(ctx); err != nil {
		return err
	}
	return a.take(ctx)
}

// try makes one attempt and waits for nobody. It does not even enter where
// somebody can be seen to have the lock.
func (a *semaphoreAttempt) try(ctx context.Context) error {
	for {
		err := a.tryOnce(ctx)
		if !errors.Is(err, errTurnLost) && !errors.Is(err, framework.ErrSessionEnded) {
			return err
		}
		a.withdraw()
	}
}

func (a *semaphoreAttempt) tryOnce(ctx context.Context) error {
	names, _, err := a.mutex.leases.Client.Children(ctx, a.mutex.leases.Dir)
	switch {
	case err != nil && !errors.Is(err, framework.ErrNoNode):
		return err
	case len(names) > 0:
		return ErrHeld
	}
	a.turn, err = a.queue.Try(ctx)
	if err != nil {
		return heldError(err)
	}
	names, err = a.enter(ctx)
	switch {
	case err != nil:
		return err
	case !a.among(names):
		return errTurnLost
	case len(names) > 1:
		return a.giveUp(ctx)
	}
	a.grant.Breaks = a.grant.Session.Breaks()
	return a.turn.Session.Err()
}

// take puts the attempt's znode among the leases and returns nil when that is
// the only child there, whoever made the others: Curator counts so, too.
func (a *semaphoreAttempt) take(ctx context.Context) error {
	names, err := a.enter(ctx)
	for {
		switch {
		case err != nil && (ctx.Err() != nil || !outage(err)):
			return err
		case err == nil && !a.among(names): // somebody deleted it
			a.grant = nil
			names, err = a.enter(ctx)
			continue
		case err == nil && len(names) == 1:
			a.grant.Breaks = a.grant.Session.Breaks()
			a.tell(0)
			return a.turn.Session.Err()
		case err == nil:
			a.tell(1)
			a.observe(ctx, names)
		}
		names, err = a.awaitChange(ctx)
	}
}

// enter makes sure that the attempt has a znode among the leases, and returns
// the names of all.
func (a *semaphoreAttempt) enter(ctx context.Context) (names []string, err error) {
	dir := a.mutex.leases.Dir
	if a.grant == nil {
		a.grant, names, err = a.turn.AddNode(ctx, a.mutex.leases, a.data)
		if err != nil || names != nil {
			return names, err
		}
	}
	names, _, err = a.turn.Client.Children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// among reports whether the attempt's znode is one of the leases' names. If not,
// it is gone: the list is no older than the znode, since it was read by the
// session that created it.
func (a *semaphoreAttempt) among(names []string) bool {
	if a.grant == nil {
		return false
	}
	_, own := framework.SplitPath(a.grant.Path)
	return slices.Contains(names, own)
}

// observe reports who has the lease, while the attempt has the first place in the queue.
func (a *semaphoreAttempt) observe(ctx context.Context, leases []string) {
	if a.seen == nil {
		return
	}
	a.seen.Waits(0)
	for _, name := range leases {
		if path := framework.JoinPath(a.mutex.leases.Dir, name); path != a.grant.Path {
			a.seen.BehindNode(ctx, a.turn.Client, path)
		}
	}
}

// awaitChange waits until there is something for the attempt to do about the
// leases, and returns their names.
func (a *semaphoreAttempt) awaitChange(ctx context.Context) ([]string, error) {
	for {
		if err := a.watchTurn(ctx); err != nil {
			return nil, err
		}
		watch, err := a.turn.Client.Watch(ctx, a.mutex.leases.Dir, framework.WatchChildren)
		if errors.Is(err, framework.ErrNoNode) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		names := watch.Children()
		waits := a.among(names) && len(names) > 1
		if waits {
			err = a.awaitFired(ctx, watch)
		}
		watch.Close()
		if !waits || err != nil {
			return names, err
		}
	}
}

// awaitFired returns nil when a watch has fired, or may have missed something.
func (a *semaphoreAttempt) awaitFired(ctx context.Context, watch *framework.Watch) error {
	recheck := time.NewTimer(waitqueue.RecheckDelay(a.turn.Client))
	defer recheck.Stop()
	select {
	case <-recheck.C:
		closeWatch(a.own)
		a.own = nil // to be read again
		return nil
	case <-watch.Fired():
		return nil
	case <-a.own.Fired():
		return nil
	case <-a.turn.Session.Lost():
		return a.turn.Session.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchTurn keeps a watch on the znode in the queue: should an operator delete
// it, the next in the queue takes its turn too. Two that wait for the end of
// each other's leases would wait for ever, so the attempt gives its lease up then.
func (a *semaphoreAttempt) watchTurn(ctx context.Context) error {
	if a.own != nil && a.own.Event() == 0 {
		return nil
	}
	closeWatch(a.own)
	var err error
	a.own, err = a.turn.Client.Watch(ctx, a.turn.Path, framework.WatchData)
	if errors.Is(err, framework.ErrNoNode) {
		return errTurnLost
	}
	return err
}

// giveUp deletes what came second, and returns ErrHeld. The next TryLock is not
// to find this one's znodes, so it waits for the deletion; what keeps that from
// being confirmed is added to the error.
func (a *semaphoreAttempt) giveUp(ctx context.Context) error {
	err := a.turn.Client.Delete(ctx, a.grant.Path, framework.Guaranteed())
	a.grant = nil
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrSessionEnded) {
		err = nil
	}
	busy := a.queue.Cancel(ctx)
	if err != nil {
		busy = fmt.Errorf("%w: %w", busy, err)
	}
	return heldError(busy)
}

// withdraw has what there is of znodes deleted in the background.
func (a *semaphoreAttempt) withdraw() {
	if a.grant != nil {
		a.turn.Client.Discard(a.grant.Path)
	}
	closeWatch(a.own)
	a.queue.Withdraw()
	a.turn, a.grant, a.own = nil, nil, nil
}

// lease returns a lease of what was granted, and has the znode in the queue deleted. Nothing waits for
// that: the next in the queue would only find the lease. The release does, by way of rest.
func (a *semaphoreAttempt) lease(ctx context.Context) *Lease {
	closeWatch(a.own)
	closeWatch(a.turn.Own)
	rest := &rest{gone: make(chan struct{})}
	go rest.leave(a.turn)
	m, grant := a.mutex, a.grant
	return m.cfg.newLease(hold.Options{
		Client: grant.Client,
		Path:   m.path,
		Grant:  &semaphoreGrant{contender.Grant{Grant: grant, Of: m.path, OpError: opError}, rest},
		Znode:  &grant.Znode,
		Hooks:  a.seen.Granted(ctx, grant.Fence(), grant.Session.Session()),
		Ended:  func(*hold.Hold, error) {},
	})
}

func closeWatch(w *framework.Watch) {
	if w != nil {
		w.Close()
	}
}
