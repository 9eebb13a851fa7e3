package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// An unfairAttempt is one call's acquire of an unfair mutex. One goroutine uses it.
type unfairAttempt struct {
	mutex   *UnfairMutex
	entered bool // it occupies the grant's gate
	data    []byte
	acq     *telemetry.Acquire // telemetry of the call
	held    bool               // it has seen another holder
	holder  *Participant       // the one that it waited for last; nil for none
	wakes   int                // how often it has woken
	long    waitqueue.LongWait

	grant unfairGrant // with the session that it is bound to; its Czxid is 0 while it has created no znode
}

// run continues until the znode is created, ctx ends or there is an error. A try ends if the znode
// exists. If the session ends, run starts again in the next one.
func (a *unfairAttempt) run(ctx context.Context, try bool) error {
	if a.held { // by this process: it must not start earlier than waiters elsewhere
		if err := a.pause(ctx); err != nil {
			return err
		}
	}
	for {
		err := a.pass(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, framework.ErrSessionEnded):
			a.unbind()
			continue
		case !errors.Is(err, framework.ErrNodeExists):
			return err
		case try:
			return a.refused(ctx)
		}
		if a.held { // another waiter was faster
			if err := a.pause(ctx); err != nil {
				return err
			}
		}
		a.held = true
	}
}

// pass waits until the lock is free, if it is known to be held, and tries to create the znode.
func (a *unfairAttempt) pass(ctx context.Context) error {
	if err := a.bind(ctx); err != nil {
		return err
	}
	if a.held {
		if err := a.awaitFree(ctx); err != nil {
			return err
		}
	}
	opts := []framework.CreateOption{
		framework.Ephemeral(), framework.KnownBySession(), framework.WithParents(), framework.StatTo(&a.grant.Stat),
		framework.WithEpoch(&a.grant.epoch),
	}
	opts = append(opts, a.mutex.cfg.WithACL()...)
	if _, err := a.grant.Client.Create(ctx, a.mutex.path, a.data, opts...); err != nil {
		return err
	}
	err := a.grant.Session.Secure(ctx)
	a.grant.Breaks = a.grant.Session.Breaks()
	return err
}

func (a *unfairAttempt) bind(ctx context.Context) error {
	if a.grant.Session != nil {
		return nil
	}
	session, err := a.mutex.client.HoldSession(ctx)
	if err != nil {
		return err
	}
	a.grant.Znode = hold.Znode{Client: a.mutex.client.InSession(session.Session()), Session: session, Path: a.mutex.path}
	return nil
}

// unbind forgets the session, and with it the znode, if there is one.
func (a *unfairAttempt) unbind() {
	if a.grant.Session != nil {
		a.grant.Session.Release()
		a.grant.Znode = hold.Znode{}
	}
}

// withdraw ends the attempt. If it has created a znode, that is deleted in the background, and
// occupies the gate until then.
func (a *unfairAttempt) withdraw() {
	switch {
	case !a.entered:
		a.grant.gate.forget()
	case a.grant.Stat.Czxid == 0:
		a.grant.gate.leave()
	default:
		a.grant.Client.Discard(a.mutex.path, a.grant.deletion()...)
	}
	a.unbind()
}

// lease returns a lease of the znode that the attempt created.
func (a *unfairAttempt) lease(ctx context.Context) *Lease {
	m, grant := a.mutex, a.grant
	grant.gate.holder.Store(&framework.Read{Data: a.data, Stat: grant.Stat})
	return m.cfg.newLease(hold.Options{
		Client: grant.Client,
		Path:   m.path,
		Grant:  &grant,
		Znode:  &grant.Znode,
		Hooks:  a.acq.Granted(ctx, grant.Fence(), grant.Session.Session()),
	})
}

// awaitFree returns nil when there is no znode. It reads before each create: if many waiters wake,
// a read of their own server refuses the late ones, instead of a write through the leader. An
// outage that the session survives costs only time.
func (a *unfairAttempt) awaitFree(ctx context.Context) error {
	for {
		watch, err := a.grant.Client.Watch(ctx, a.mutex.path, framework.WatchData)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return nil
		case err == nil:
			a.acq.Waits(telemetry.NoQueue)
			a.acq.Behind(watch.Data())
			a.sees(watch)
			st, _ := watch.Stat()
			if err = checkKind(a.mutex.full, st); err == nil {
				err = a.long.Await(ctx, a.grant.Session, func() waitqueue.Blocker {
					return waitqueue.Blocker{Ahead: -1, Path: a.mutex.path, Data: watch.Data(), Stat: st}
				}, watch, nil, nil)
			}
			watch.Close()
		case waitqueue.Disconnected(err) && ctx.Err() == nil:
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

// refused returns the error of a try: ErrMixed if the znode is the directory of another kind of lock,
// else ErrHeld. A directory refuses every try, so the first one that is refused reads the znode, and
// then at most one in checkEvery. If the read fails, ErrHeld is still true.
func (a *unfairAttempt) refused(ctx context.Context) error {
	m := a.mutex
	now, last := time.Now(), m.checked.Load()
	if last != nil && now.Sub(*last) < checkEvery {
		return ErrHeld
	}
	st, _, err := a.grant.Client.Exists(ctx, m.path)
	if err == nil {
		if err = checkKind(m.full, st); err == nil {
			m.checked.Store(&now)
		}
	}
	if errors.Is(err, ErrMixed) {
		return err
	}
	return ErrHeld
}

// checkEvery keeps the read of a try that is refused rare: most tries cost one round trip.
const checkEvery = time.Minute

// checkKind returns ErrMixed if the znode is the directory of another kind of lock. The ensemble itself
// excludes the kinds: there is a directory at the path, or an unfair mutex's znode, which can't have
// children. A directory without contenders is waited for, because the ensemble removes it if it is a
// container.
func checkKind(full string, st framework.Stat) error {
	if st.NumChildren > 0 {
		return fmt.Errorf("%w: %s has children; this is an unfair mutex", ErrMixed, full)
	}
	return nil
}

// sees records the holder, whose znode the watch has read.
func (a *unfairAttempt) sees(watch *framework.Watch) {
	st, _ := watch.Stat()
	znode := &framework.Read{Data: watch.Data(), Stat: st}
	a.holder = holderOf(a.mutex.path, znode)
	a.grant.gate.holder.Store(znode)
}

// holderOf returns the holder that has the znode, for a lock at the path.
func holderOf(path string, znode *framework.Read) *Participant {
	p := contender.At(path, znode.Data, znode.Stat)
	p.Holder = true
	return &p
}

// A waiter that wakes pauses for a random time before it looks again. The bound doubles with each
// time, so that waiters come one after another, and quickly if they are few.
const (
	firstPause = 2 * time.Millisecond
	maxPause   = 32 * time.Millisecond
)

func (a *unfairAttempt) pause(ctx context.Context) error {
	bound := pace.Doubled(firstPause, maxPause, a.wakes)
	a.wakes++
	return pace.Sleep(ctx, rand.N(bound))
}
