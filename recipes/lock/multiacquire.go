package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// An acquisition is one call of Lock or TryLock of a [Multi]. It never waits for a member while it
// holds a later one, or while it is in a later one's queue. So no deadlock can include it.
type acquisition struct {
	members []member
	shown   string // their names with the paths in the ensemble, for errors
	caller  caller
	try     bool
	limit   int           // of members in one transaction
	leases  []*Lease      // of the first members
	batch   []batchMember // of the present step
	rounds  pace.Pace     // of steps after a refusal
}

// run returns a lease of each member, or none and an error.
func (a *acquisition) run(ctx context.Context) ([]*Lease, error) {
	return contender.RunAttempt(ctx, func() error {
		return a.repeat(ctx)
	}, func() []*Lease {
		return a.leases
	}, func(err error) error {
		if a.leases != nil { // ctx ended with the last of them
			err = a.opError(a.shown, err)
		}
		a.abandon()
		return err
	})
}

// repeat advances until no lease is lost meanwhile.
func (a *acquisition) repeat(ctx context.Context) error {
	for {
		err := a.advance(ctx)
		if err == nil && !a.lost() {
			return nil
		}
		undone := a.undo(ctx)
		if err != nil {
			return errors.Join(err, undone)
		}
		// One was lost while others were waited for: undone says no more than that.
	}
}

// advance takes one step after another until there is a lease of each member.
func (a *acquisition) advance(ctx context.Context) error {
	for len(a.leases) < len(a.members) {
		if ctx.Err() != nil {
			return a.opError(a.shown, ctx.Err())
		}
		next := a.members[len(a.leases):]
		var err error
		if n := together(next, a.limit); n > 1 {
			before := len(a.leases)
			err = a.step(ctx, next[:n])
			a.batch = nil
			if err == nil && len(a.leases) == before {
				err = a.opError(a.shown, a.rounds.Wait(ctx, 1))
			}
		} else {
			err = a.lock(ctx, next[0])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *acquisition) lost() bool {
	return slices.ContainsFunc(a.leases, func(l *Lease) bool { return errors.Is(l.Err(), ErrLost) })
}

// undo releases the locked members. If ctx has ended, the releases continue in the background,
// without an error.
func (a *acquisition) undo(ctx context.Context) error {
	err := releaseAll(ctx, slices.Backward(a.leases))
	a.leases = nil
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// abandon releases and withdraws everything in the background.
func (a *acquisition) abandon() {
	for _, e := range a.batch {
		if e.lease != nil {
			a.leases = append(a.leases, e.lease)
		} else {
			e.member.queueLock.abandon(e.entry)
		}
	}
	discardAll(a.leases)
}

func (a *acquisition) opError(name string, err error) error {
	if a.try {
		return recipe.Error(nil, "try lock", name, err)
	}
	return recipe.Error(nil, "lock", name, err)
}

// lock locks one member, as its own methods do.
func (a *acquisition) lock(ctx context.Context, m member) error {
	var lease *Lease
	var err error
	switch {
	case m.queueLock != nil:
		lease, err = m.queueLock.acquire(ctx, a.caller, a.try)
		err = a.opError(m.shown(), err)
	case a.try:
		lease, err = m.lock.TryLock(ctx)
	default:
		lease, err = m.lock.Lock(ctx)
	}
	if err != nil {
		return err
	}
	a.leases = append(a.leases, lease)
	return nil
}

// step enters the queues of the members by one transaction. It keeps the grants up to the first
// member that another client holds, leaves the queues after that one, and waits for it.
func (a *acquisition) step(ctx context.Context, members []member) error {
	batch, err := a.join(ctx, members)
	a.batch = batch
	if err != nil {
		return a.quit(ctx, batch, err)
	}
	if len(batch) == 0 { // another goroutine of the caller drives the first
		return a.lock(ctx, members[0])
	}
	attempts := attemptsOf(batch)
	if err := waitqueue.Enqueue(ctx, attempts); err != nil {
		if errors.Is(err, framework.ErrTooLarge) && len(attempts) > 1 {
			a.limit = len(batch) / 2
			return a.quit(ctx, batch, nil)
		}
		return a.quit(ctx, batch, a.opError(a.shown, err))
	}
	grants, err := waitqueue.TryGrant(ctx, attempts)
	busy := distribute(batch, grants)
	if a.try && err != nil {
		return a.refused(ctx, batch, batch[busy], err)
	}
	return a.takeGrants(ctx, batch, busy)
}

// A batchMember is a member in a step: either it was re-entered, or the acquisition drives an attempt
// for it.
type batchMember struct {
	member member
	lease  *Lease             // of a re-entry; nil for none
	entry  *entry             // with the attempt that is driven; nil for none
	grant  *waitqueue.Grant   // of the attempt; nil for none yet
	acq    *telemetry.Acquire // telemetry of the attempt
}

// join finds the caller's entries of the members, up to a member that another goroutine of the
// caller drives. The caller must also quit a batch that join returns with an error.
func (a *acquisition) join(ctx context.Context, members []member) ([]batchMember, error) {
	var batch []batchMember
	for _, m := range members {
		found, err := m.queueLock.admit(ctx, m.queueLock.key(a.caller), nil, a.try)
		switch {
		case err != nil:
			return batch, a.opError(m.shown(), err)
		case found.outcome != nil:
			m.queueLock.leave(found.entry, a.try)
			return batch, nil
		case found.lease != nil:
			found.entry = nil
		}
		e := batchMember{member: m, lease: found.lease, entry: found.entry}
		if e.entry != nil {
			_, e.acq = m.tel.Begin(ctx)
			e.entry.observe(e.acq)
		}
		batch = append(batch, e)
	}
	return batch, nil
}

func attemptsOf(batch []batchMember) []*waitqueue.Attempt {
	var attempts []*waitqueue.Attempt
	for _, e := range batch {
		if e.entry != nil {
			attempts = append(attempts, e.entry.attempt)
		}
	}
	return attempts
}

// distribute gives the grants, which are those of the first attempts, to their members. It returns the index
// of the first member that waits, len(batch) for none.
func distribute(batch []batchMember, grants []*waitqueue.Grant) (busy int) {
	for i := range batch {
		switch e := &batch[i]; {
		case e.entry == nil:
		case len(grants) == 0:
			return i
		default:
			e.grant, grants = grants[0], grants[1:]
		}
	}
	return len(batch)
}

// takeGrants takes the grants of the batch before busy. It leaves the queues behind busy and waits for busy.
func (a *acquisition) takeGrants(ctx context.Context, batch []batchMember, busy int) error {
	for i, e := range batch[:busy] {
		lease := e.lease
		if e.entry != nil {
			q := e.member.queueLock
			granted, err := contender.RunAttempt(ctx, func() error {
				return nil
			}, func() *Lease {
				return q.lease(ctx, e.entry, e.grant)
			}, func(err error) error {
				q.abandon(e.entry)
				return err
			})
			lease = granted
			contender.EndAcquire(ctx, e.acq, lease, err)
			if err != nil {
				return a.quit(ctx, batch[i+1:], a.opError(e.member.shown(), err))
			}
		}
		a.leases, a.batch = append(a.leases, lease), batch[i+1:]
		if e.entry != nil && !a.try {
			e.entry.attempt.ReportGranted()
		}
	}
	if busy == len(batch) {
		return nil
	}
	// The deletion continues even if it is not confirmed, so the wait goes on.
	_ = a.quit(ctx, batch[busy+1:], nil)
	a.batch = nil // the one that is left withdraws by itself
	e := batch[busy]
	lease, err := contender.Observe(ctx, e.acq, func() (*Lease, error) {
		return e.member.queueLock.attempt(e.acq.Within(ctx), e.entry, false)
	})
	if err != nil {
		return a.opError(e.member.shown(), err)
	}
	a.leases = append(a.leases, lease)
	return nil
}

// refused leaves all queues and returns ErrHeld. It returns nil, for a new attempt, if the session
// ended or another client deleted one of the caller's nodes.
func (a *acquisition) refused(ctx context.Context, batch []batchMember, busy batchMember, err error) error {
	switch {
	case waitqueue.Restartable(err):
		err = nil
	case errors.Is(err, waitqueue.ErrBusy):
		err = a.opError(busy.member.shown(), ErrHeld)
		contender.EndAcquire(ctx, busy.acq, nil, ErrHeld)
	default:
		err = a.opError(busy.member.shown(), err)
	}
	return a.quit(ctx, batch, err)
}

// quit withdraws the batch, whose znodes are deleted by one transaction. An attempt for which
// another goroutine of the caller waits is taken over by that goroutine. quit returns err, joined
// with errors of the deletions.
func (a *acquisition) quit(ctx context.Context, batch []batchMember, err error) error {
	if len(batch) == 0 {
		return err
	}
	o := batch[0].member.owners
	var unwanted []*waitqueue.Attempt
	var leases []*Lease
	var acquires []*telemetry.Acquire
	o.mu.Lock()
	for _, e := range batch {
		if e.lease != nil {
			leases = append(leases, e.lease)
			continue
		}
		acquires = append(acquires, e.acq)
		e.entry.undrivenLocked()
		if o.unwantedLocked(e.entry) {
			unwanted = append(unwanted, e.entry.attempt)
		}
	}
	o.mu.Unlock()
	undone := waitqueue.WithdrawAll(ctx, unwanted)
	for _, acquire := range acquires {
		acquire.Withdraw(ctx, err)
	}
	if undone != nil && ctx.Err() == nil {
		err = errors.Join(err, fmt.Errorf("and to leave the queue again: %w", undone))
	}
	return errors.Join(err, releaseAll(ctx, slices.All(leases)))
}
