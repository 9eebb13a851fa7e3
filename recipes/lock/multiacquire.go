package lock

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/internal/pace"
	"github.com/docent-go/docent/recipes/internal/contender"
)

// An acquisition is one call of Lock or TryLock of a [Multi]. It never waits for a member while it
// holds a later one, or while it is in a later one's queue. So no deadlock can include it.
type acquisition struct {
	members []member
	name    string // of all of them
	caller  caller
	try     bool
	limit   int           // of members in one transaction
	leases  []*Lease      // of the first members
	batch   []batchMember // of the present step
	rounds  pace.Pace     // of steps after a refusal
}

// run returns a lease of each member, or none and an error.
func (a *acquisition) run(ctx context.Context) ([]*Lease, error) {
	returned := false
	defer func() {
		if !returned { // a function of the user's panicked
			a.abandon()
		}
	}()
	leases, err := a.repeat(ctx)
	returned = true
	return leases, err
}

// repeat advances until no lease is lost meanwhile.
func (a *acquisition) repeat(ctx context.Context) ([]*Lease, error) {
	for {
		err := a.advance(ctx)
		if err == nil && !a.lost() {
			return a.leases, nil
		}
		undone := a.undo(ctx)
		if err != nil {
			return nil, errors.Join(err, undone)
		}
		// One was lost while others were waited for: undone says no more than that.
	}
}

// advance takes one step after another until there is a lease of each member.
func (a *acquisition) advance(ctx context.Context) error {
	for len(a.leases) < len(a.members) {
		if ctx.Err() != nil {
			return a.opError(a.name, ctx.Err())
		}
		next := a.members[len(a.leases):]
		var err error
		if n := together(next, a.limit); n > 1 {
			before := len(a.leases)
			err = a.step(ctx, next[:n])
			a.batch = nil
			if err == nil && len(a.leases) == before {
				err = a.opError(a.name, a.rounds.Wait(ctx, 1))
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

// waitError returns err with a WaitError for a wait that ctx ended, unless a member's has one already.
func (a *acquisition) waitError(ctx context.Context, err error) error {
	var wait *WaitError
	if a.try || errors.As(err, &wait) {
		return err
	}
	for _, m := range a.members {
		if m.queueLock != nil {
			return contender.WaitError(ctx, m.queueLock.queue.Client, a.name, -1, nil, err)
		}
	}
	return err
}

func (a *acquisition) opError(name string, err error) error {
	if a.try {
		return opError("try lock", name, err)
	}
	return opError("lock", name, err)
}

// lock locks one member, as its own methods do.
func (a *acquisition) lock(ctx context.Context, m member) error {
	var lease *Lease
	var err error
	switch {
	case m.queueLock != nil:
		lease, err = m.queueLock.acquire(ctx, a.caller, a.try)
		err = a.opError(m.name, err)
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
