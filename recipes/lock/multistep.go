package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/queue"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// step enters the queues of the members by one transaction, keeps those up to
// the first that somebody else has, leaves the queues behind that one, and waits for it.
func (a *acquisition) step(ctx context.Context, members []member) error {
	entries, err := a.join(ctx, members)
	a.entries = entries
	if err != nil {
		return a.quit(ctx, entries, err)
	}
	if len(entries) == 0 { // another goroutine of the party is at the first
		return a.lock(ctx, members[0])
	}
	attempts := attemptsOf(entries)
	if err := queue.EnterAll(ctx, attempts); err != nil {
		if ctxerr.Is(err, framework.ErrTooLarge) && len(attempts) > 1 {
			a.limit = len(entries) / 2
			return a.quit(ctx, entries, nil)
		}
		return a.quit(ctx, entries, a.opError(a.name, err))
	}
	grants, err := queue.GrantAll(ctx, attempts)
	busy := len(entries) // index of the first that is not granted
	if err != nil {
		busy = slices.IndexFunc(entries, func(e entry) bool { return e.hold != nil && e.hold.attempt == attempts[len(grants)] })
	}
	if a.try && err != nil {
		return a.refused(ctx, entries, entries[busy], err)
	}
	return a.settle(ctx, entries, grants, busy)
}

// An entry is a member in a step: either it was re-entered, or an attempt is
// driven for it.
type entry struct {
	member member
	lease  *Lease
	hold   *hold
	seen   *telemetry.Acquire // what telemetry follows of the attempt
}

// join finds the party's place in the members, up to one that another goroutine
// of the party is at. What it returns with an error has to be quit too.
func (a *acquisition) join(ctx context.Context, members []member) ([]entry, error) {
	var entries []entry
	for _, m := range members {
		found, err := m.side.take(ctx, m.side.key(a.party), nil, a.try)
		switch {
		case err != nil:
			return entries, a.opError(m.name, err)
		case found.turn != nil:
			m.side.unjoin(found.hold)
			return entries, nil
		case found.lease != nil:
			found.hold = nil
		}
		e := entry{member: m, lease: found.lease, hold: found.hold}
		e.begin(ctx)
		entries = append(entries, e)
	}
	return entries, nil
}

func attemptsOf(entries []entry) []*queue.Attempt {
	var attempts []*queue.Attempt
	for _, e := range entries {
		if e.hold != nil {
			attempts = append(attempts, e.member.side.contender(e.hold))
		}
	}
	return attempts
}

// settle takes the grants, which are those of the entries before busy, leaves the
// queues behind it, and waits for it.
func (a *acquisition) settle(ctx context.Context, entries []entry, grants []*queue.Grant, busy int) error {
	for i, e := range entries[:busy] {
		lease := e.lease
		if e.hold != nil {
			var err error
			lease, err = e.member.side.conclude(ctx, e.hold, grants[0], nil)
			endAcquire(ctx, e.seen, lease, err)
			if err != nil {
				return a.quit(ctx, entries[i+1:], a.opError(e.member.name, err))
			}
			grants = grants[1:]
		}
		a.leases, a.entries = append(a.leases, lease), entries[i+1:]
		if e.hold != nil && !a.try {
			e.hold.attempt.Arrive()
		}
	}
	if busy == len(entries) {
		return nil
	}
	// What keeps a deletion from being confirmed is no reason not to wait: it goes on.
	_ = a.quit(ctx, entries[busy+1:], nil)
	a.entries = nil // one is left, and gives itself up
	e := entries[busy]
	lease, err := observed(ctx, e.seen, func() (*Lease, error) {
		return e.member.side.drive(e.seen.Within(ctx), e.hold, false)
	})
	if err != nil {
		return a.opError(e.member.name, err)
	}
	a.leases = append(a.leases, lease)
	return nil
}

// refused leaves all queues, and returns ErrHeld; or nil, for a new attempt, if
// the session ended or a node of the party's was deleted.
func (a *acquisition) refused(ctx context.Context, entries []entry, busy entry, err error) error {
	switch {
	case queue.Anew(err):
		err = nil
	case ctxerr.Is(err, queue.ErrBusy):
		err = a.opError(busy.member.name, ErrHeld)
		endAcquire(ctx, busy.seen, nil, ErrHeld)
	default:
		err = a.opError(busy.member.name, err)
	}
	return a.quit(ctx, entries, err)
}

// quit gives the entries up, whose znodes go by one transaction, unless another
// goroutine of the party waits for an attempt: that takes it over. It returns
// err, joined with what keeps the deletions from being confirmed.
func (a *acquisition) quit(ctx context.Context, entries []entry, err error) error {
	if len(entries) == 0 {
		return err
	}
	r := entries[0].member.registry
	var unwanted []*queue.Attempt
	var leases []*Lease
	var seen []*telemetry.Acquire
	r.mu.Lock()
	for _, e := range entries {
		if e.lease != nil {
			leases = append(leases, e.lease)
			continue
		}
		seen = append(seen, e.seen)
		e.hold.undrivenLocked()
		if r.unwantedLocked(e.hold) {
			unwanted = append(unwanted, e.member.side.contender(e.hold))
		}
	}
	r.mu.Unlock()
	undone := queue.WithdrawAll(ctx, unwanted)
	withdrawAll(ctx, seen, err)
	if undone != nil && ctx.Err() == nil {
		err = errors.Join(err, fmt.Errorf("and to leave the queue again: %w", undone))
	}
	return errors.Join(err, releaseAll(ctx, slices.All(leases)))
}
