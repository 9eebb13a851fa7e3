package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A queueLock is one way to hold a lock whose contenders queue. A mutex has one, a read/write lock
// has two.
type queueLock struct {
	owners *owners
	queue  *waitqueue.Queue
	kind   string // of its znodes
	other  string // kind of the lock's other side; "" if there is none
	path   string // of the lock, as its user gave it
	full   string // of the lock, in the ensemble
	cfg    config
	tel    telemetry.Lock
}

func (q *queueLock) key(c caller) ownerKey { return ownerKey{path: q.full, kind: q.kind, caller: c} }

// acquire leads a call of Lock or TryLock to its lease:
//
//   - if the caller holds the lock, the call gets one more lease of its hold;
//   - if another goroutine of the caller drives an attempt, the call waits for its outcome;
//   - else the call drives the attempt: see attempt.
func (q *queueLock) acquire(ctx context.Context, c caller, try bool) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	admitted, err := q.admit(ctx, q.key(c), nil, try)
	if admitted.lease != nil {
		return admitted.lease, nil // a re-entry has no telemetry
	}
	ctx, seen := q.tel.Begin(cause.Inside(ctx))
	return contender.Observed(ctx, seen, func() (*Lease, error) {
		switch {
		case err != nil:
			return nil, err
		case try:
			return contender.Try(ctx, q.queue.Client, func(ctx context.Context) (*Lease, error) {
				return q.contend(ctx, q.key(c), admitted, seen, true)
			})
		}
		return q.contend(ctx, q.key(c), admitted, seen, false)
	})
}

// contend is the rest of acquire for a call that was admitted.
func (q *queueLock) contend(
	ctx context.Context, key ownerKey, admitted admission, seen *telemetry.Acquire, try bool,
) (*Lease, error) {
	for {
		switch {
		case admitted.lease != nil:
			seen.Join()
			return admitted.lease, nil
		case admitted.outcome == nil:
			admitted.entry.observe(seen)
			return q.attempt(ctx, admitted.entry, try)
		case try && !admitted.trying:
			q.leave(admitted.entry)
			return nil, ErrHeld
		}
		if err := wait(ctx, admitted.outcome); err != nil {
			q.leave(admitted.entry)
			return nil, contender.WaitError(ctx, q.queue.Client, q.path, -1, nil, err)
		}
		var err error
		if admitted, err = q.admit(ctx, key, admitted.entry, try); err != nil {
			return nil, err
		}
	}
}

// attempt drives e's attempt. [waitqueue.Attempt.Run] enters the queue, waits until no contender is
// ahead, and then has the session's existence proven. If it fails while another goroutine of the
// caller waits for the outcome, that goroutine takes the attempt over, with its place in the queue.
// Otherwise the attempt is withdrawn.
func (q *queueLock) attempt(ctx context.Context, e *entry, try bool) (*Lease, error) {
	returned := false
	defer func() {
		if !returned { // a user's function panicked
			q.abandon(e)
		}
	}()
	run := e.attempt.Run
	if try {
		run = e.attempt.Try
	}
	grant, err := run(ctx)
	returned = true
	if !try {
		err = contender.WaitErrorOf(ctx, q.queue, q.path, e.attempt, 0, err)
	}
	return q.conclude(ctx, e, grant, contender.HeldError(err))
}

// conclude ends the driving of e's attempt, with a lease of the grant or with err.
func (q *queueLock) conclude(ctx context.Context, e *entry, grant *waitqueue.Grant, err error) (*Lease, error) {
	if err == nil && ctx.Err() != nil {
		err = ctx.Err() // both at once: after the end of ctx there is no lease
	}
	if err != nil {
		q.abandon(e)
		return nil, err
	}
	l := q.cfg.newLease(hold.Options{
		Client: grant.Client,
		Path:   q.path,
		Grant:  &contender.Grant{Grant: grant, Of: q.path, OpError: opError},
		Znode:  &grant.Znode,
		Hooks:  e.seen.Granted(ctx, grant.Fence(), grant.Session.Session()),
		Ended:  func(h *hold.Hold, lost error) { q.owners.ended(e, h, lost) },
	})
	e.observe(nil)
	q.owners.granted(e, grant, contender.ShareOf(l).Hold())
	return l, nil
}

// newEntry returns an entry whose attempt has not begun. For a downgrade, write is the caller's entry
// of the write side, which it holds; otherwise write is nil.
func (q *queueLock) newEntry(key ownerKey, write *entry) *entry {
	e := &entry{lock: q, key: key}
	data := func() []byte { return q.cfg.nodeData(q.queue.Client, key.caller, e.seen) }
	if write != nil {
		e.attempt = q.queue.NewDowngrade(write.grant, q.kind, data)
	} else {
		e.attempt = q.queue.NewAttempt(q.kind, data)
	}
	return e
}

// observe sets the telemetry of the attempt that the caller drives; nil means none.
func (e *entry) observe(seen *telemetry.Acquire) {
	e.seen = seen
	e.attempt.Observer = contender.ObserverOf(seen)
}

// unlock releases the caller's latest lease, or returns ErrNotOwner for the operation. If another
// goroutine of the owner releases that lease first, unlock releases the one before.
func (q *queueLock) unlock(ctx context.Context, op string) error {
	for {
		l := q.owners.latest(q.key(callerOf(ctx)))
		if l == nil {
			return opError(op, q.path, ErrNotOwner)
		}
		if err := contender.ShareOf(l).Release(ctx); !errors.Is(err, ErrReleased) {
			return cause.Join(ctx, err)
		}
	}
}

// held returns the caller's lock count.
func (q *queueLock) held(ctx context.Context) int { return q.owners.count(q.key(callerOf(ctx))) }
