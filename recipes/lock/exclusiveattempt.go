package lock

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/queue"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// An exclusiveAttempt is one call's way to an exclusive lock, while it has the
// seat. It is used by one goroutine.
type exclusiveAttempt struct {
	lock  *Exclusive
	seat  *seat
	data  []byte
	seen  *telemetry.Acquire // what telemetry follows of the call
	taken bool               // somebody else is known to have had the lock
	wakes int                // how often it has woken

	client *framework.Client // bound to the hold's session
	hold   *framework.SessionHold
	stat   framework.Stat // of the znode that it created in the session; its Czxid is 0 if there is none
	epoch  int32          // of that znode
}

// attemptData returns what the znode of an attempt is to hold. Its id tells the
// attempt's znode from any other, should the reply to the create be lost. Where
// the data is to be left alone, the seat does: while somebody has it, the
// session has no other attempt at the path and no lease of it.
func (e *Exclusive) attemptData(ctx context.Context, seen *telemetry.Acquire) []byte {
	return e.cfg.attemptData(named(ctx), crand.Text(), seen)
}

// run goes on until the znode is created, ctx ends or there is an error. A try
// ends where the znode exists. When the session ends it begins anew in the next.
func (a *exclusiveAttempt) run(ctx context.Context, try bool) (*queue.Grant, error) {
	if a.taken { // by this process: it is to wake no earlier than those elsewhere
		if err := a.pause(ctx); err != nil {
			return nil, err
		}
	}
	for {
		err := a.pass(ctx)
		switch {
		case err == nil:
			return &queue.Grant{Client: a.client, Hold: a.hold, Node: a.lock.path, Stat: a.stat, Breaks: a.hold.Breaks()}, nil
		case ctxerr.Is(err, framework.ErrSessionEnded):
			a.unbind()
		case ctxerr.Is(err, framework.ErrNodeExists) && try:
			return nil, ErrHeld
		case ctxerr.Is(err, framework.ErrNodeExists):
			a.taken = true
		default:
			return nil, err
		}
	}
}

// pass waits until the lock is free, if it is known to be taken, and tries to
// create the znode.
func (a *exclusiveAttempt) pass(ctx context.Context) error {
	if err := a.bind(ctx); err != nil {
		return err
	}
	if a.taken {
		if err := a.awaitFree(ctx); err != nil {
			return err
		}
	}
	opts := []framework.CreateOption{
		framework.Ephemeral(), framework.KnownByData(), framework.WithParents(), framework.StatTo(&a.stat),
		framework.WithEpoch(&a.epoch),
	}
	if a.lock.cfg.acl != nil {
		opts = append(opts, framework.WithACL(a.lock.cfg.acl...))
	}
	if _, err := a.client.Create(ctx, a.lock.path, a.data, opts...); err != nil {
		return err
	}
	return a.hold.Secure(ctx)
}

func (a *exclusiveAttempt) bind(ctx context.Context) error {
	if a.hold != nil {
		return nil
	}
	hold, err := a.lock.client.HoldSession(ctx)
	if err != nil {
		return err
	}
	a.hold, a.client = hold, a.lock.client.InSession(hold.Session())
	return nil
}

// unbind forgets the session, and with it the znode, if there is one.
func (a *exclusiveAttempt) unbind() {
	if a.hold != nil {
		a.hold.Release()
		a.hold, a.client, a.stat = nil, nil, framework.Stat{}
	}
}

// giveUp ends the attempt. A znode that it created is deleted in the background, and keeps
// the seat until then.
func (a *exclusiveAttempt) giveUp() {
	if a.stat.Czxid == 0 {
		a.seat.leave()
	} else {
		a.client.Discard(a.lock.path, a.means()...)
	}
	a.unbind()
}

// means returns how the created znode is to be deleted. The seat becomes free with the
// znode's end: the client must not create another one while this one exists, because it
// could not tell the two apart if a reply were lost.
func (a *exclusiveAttempt) means() []framework.DeleteOption {
	return []framework.DeleteOption{
		framework.AtEpoch(a.epoch), framework.CreatedBy(a.stat.Czxid), framework.WhenOver(a.seat.leave),
	}
}

// guard returns the operation that makes a transaction fail unless the created znode exists.
func (a *exclusiveAttempt) guard() framework.TxnOp {
	return framework.OpAtEpoch(a.lock.path, a.epoch)
}

// awaitFree returns nil when there is no znode. It looks before each create:
// where many have woken, those who come late are refused by a read of their own
// server and not by a write through the leader. An outage that the session
// survives costs nothing but time.
func (a *exclusiveAttempt) awaitFree(ctx context.Context) error {
	for {
		watch, err := a.client.Watch(ctx, a.lock.path, framework.WatchData)
		switch {
		case ctxerr.Is(err, framework.ErrNoNode):
			return nil
		case err == nil:
			a.seen.Waits(telemetry.NoQueue)
			a.seen.Behind(watch.Data())
			err = a.awaitFired(ctx, watch)
			watch.Close()
		case outage(err) && ctx.Err() == nil:
			err = nil
		}
		if err == nil {
			err = a.pause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// outage reports whether err is only for lack of a connection.
func outage(err error) bool {
	return ctxerr.Is(err, framework.ErrNotConnected) || ctxerr.Is(err, framework.ErrUnknownOutcome)
}

func (a *exclusiveAttempt) awaitFired(ctx context.Context, watch *framework.Watch) error {
	slow := time.NewTimer(queue.UntilSlowLook(a.client))
	defer slow.Stop()
	for {
		select {
		case <-watch.Fired():
			return nil
		case <-slow.C:
			if gone, err := a.slowLook(ctx); gone || err != nil {
				return err
			}
			slow.Reset(queue.UntilSlowLook(a.client))
		case <-a.hold.Lost():
			return a.hold.Err()
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
}

// slowLook reads the holder's znode, whose deletion the watch may have missed. An outage is no
// error: it fires the watch.
func (a *exclusiveAttempt) slowLook(ctx context.Context) (gone bool, err error) {
	read, err := a.client.Watch(ctx, a.lock.path, framework.WatchData)
	switch {
	case ctxerr.Is(err, framework.ErrNoNode):
		return true, nil
	case err == nil:
		read.Close()
	case outage(err) && ctx.Err() == nil:
		err = nil
	}
	return false, err
}

// The pause before one that has woken looks again is random, below a bound that
// doubles with each time, so that those who wake together come one after
// another, within a moment where they are few.
const (
	firstPause = 2 * time.Millisecond
	maxPause   = 32 * time.Millisecond
)

func (a *exclusiveAttempt) pause(ctx context.Context) error {
	bound := min(firstPause<<min(a.wakes, 10), maxPause)
	a.wakes++
	timer := time.NewTimer(rand.N(bound))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}
