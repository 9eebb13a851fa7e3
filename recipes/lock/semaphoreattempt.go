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

// A semaphoreAttempt is one call's acquire of a semaphore mutex. It waits until it is the first in
// the queue, and creates a znode among the leases. When that is the only lease, it leaves the
// queue. While it is the first, no contender behind it touches the leases. One goroutine uses it.
type semaphoreAttempt struct {
	mutex *SemaphoreMutex
	data  []byte
	seen  *telemetry.Acquire // telemetry of the call
	queue *waitqueue.Attempt
	place int // that was reported last

	turn  *waitqueue.Grant // the first place in the queue; nil before
	grant *waitqueue.Grant // the znode among the leases, granted or not; nil if there is none
	own   *framework.Watch // on the queue's znode, from the start of the wait
}

func (m *SemaphoreMutex) newAttempt(ctx context.Context, seen *telemetry.Acquire) *semaphoreAttempt {
	a := &semaphoreAttempt{mutex: m, data: m.cfg.nodeData(shown(ctx), seen), seen: seen, place: -1}
	turns := *m.turns
	if m.cfg.position != nil {
		turns.OnPosition = func(ahead int) {
			if ahead > 0 { // else it is the first, and looks for a holder next
				a.tell(ahead + 1)
			}
		}
	}
	a.queue = turns.NewAttempt(mutexKind, func() []byte { return a.data })
	seen.Beyond(1)
	a.queue.Observer = contender.ObserverOf(seen)
	return a
}

// tell reports the number of contenders ahead if it has changed.
func (a *semaphoreAttempt) tell(place int) {
	if fn := a.mutex.cfg.position; fn != nil && place != a.place {
		a.place = place
		fn(place)
	}
}

// errTurnLost means that another client deleted the attempt's znode in the queue.
var errTurnLost = errors.New("own node is gone from the queue")

// run continues until the lease is granted, ctx ends or there is an error. If the session ends, or
// another client deletes the znode in the queue, it starts again.
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

// takeInTurn acquires the lock after the contenders ahead.
func (a *semaphoreAttempt) takeInTurn(ctx context.Context) (err error) {
	if a.turn, err = a.queue.Run(ctx); err != nil {
		return err
	}
	return a.take(ctx)
}

// try makes one attempt without a wait. If a listing shows a holder, it does not enter the queue.
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

// take creates the attempt's znode among the leases and returns nil when that is the only child. It
// counts children of any creator, as Curator does.
func (a *semaphoreAttempt) take(ctx context.Context) error {
	names, err := a.enter(ctx)
	for {
		switch {
		case err != nil && (ctx.Err() != nil || !outage(err)):
			return err
		case err == nil && !a.among(names): // another client deleted it
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

// enter makes sure that the attempt has a znode among the leases, and returns the names of all.
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

// among reports whether the leases' names contain the attempt's znode. If they don't, the znode is
// gone: the session that created it read the list, so the list is no older than the znode.
func (a *semaphoreAttempt) among(names []string) bool {
	if a.grant == nil {
		return false
	}
	_, own := framework.SplitPath(a.grant.Path)
	return slices.Contains(names, own)
}

// observe reports the holder of the lease, while the attempt is the first in the queue.
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

// awaitChange waits for a change that may concern the attempt, and returns the leases' names.
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

// watchTurn keeps a watch on the znode in the queue. If an operator deletes it, the successor
// becomes the first too. Two attempts that wait for the end of each other's lease would wait
// forever, so this attempt then deletes its lease.
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

// giveUp deletes the attempt's lease, which is not the only one, and returns ErrHeld. It waits for
// the deletions, because the next TryLock must not find this attempt's znodes. If they are not
// confirmed, their error is joined.
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

// withdraw deletes the attempt's znodes in the background.
func (a *semaphoreAttempt) withdraw() {
	if a.grant != nil {
		a.turn.Client.Discard(a.grant.Path)
	}
	closeWatch(a.own)
	a.queue.Withdraw()
	a.turn, a.grant, a.own = nil, nil, nil
}

// lease returns a lease of the grant, and starts the deletion of the znode in the queue. The call
// does not wait for it, because the successor would only find the lease. The release waits for it:
// see rest.
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
