package lock

import (
	"context"
	"errors"
	"sync/atomic"

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
	latest *atomic.Pointer[entry] // the entry of the latest hold, for reenter; nil once that has ended
}

// newQueueLock returns the way to hold the lock of the queue by znodes of the kind.
func newQueueLock(queue *waitqueue.Queue, cfg config, kind, telemetryType string) queueLock {
	c, full := queue.Client, queue.Client.AbsolutePath(queue.Dir)
	return queueLock{
		owners: ownersOf(c), queue: queue, kind: kind, path: queue.Dir, full: full, cfg: cfg,
		tel: telemetry.Of(c, telemetryType, cfg.Name, full), latest: new(atomic.Pointer[entry]),
	}
}

// key returns the key of the caller's entry; of a new one at each call with WithoutReentry.
func (q *queueLock) key(c caller) ownerKey {
	if q.cfg.noReentry {
		c = caller{owner: Owner{&ownerIdentity{name: c.owner.String(), party: c.party(q.queue.Client)}}}
	}
	return ownerKey{path: q.full, kind: q.kind, caller: c}
}

// acquire leads a call of Lock or TryLock to its lease:
//
//   - if the caller holds the lock, the call gets one more lease of its hold;
//   - if another goroutine of the caller drives an attempt, the call waits for its outcome;
//   - else the call drives the attempt: see attempt.
func (q *queueLock) acquire(ctx context.Context, c caller, try bool) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if l := q.reenter(ctx, c); l != nil {
		return reentered(l), nil
	}
	key := q.key(c)
	admitted, err := q.admit(ctx, key, nil, try)
	if admitted.lease != nil {
		return reentered(admitted.lease), nil // which has no span
	}
	return contender.Acquire(ctx, q.tel, q.queue.Client, try, func(ctx context.Context, acq *telemetry.Acquire) (*Lease, error) {
		if err != nil {
			return nil, err
		}
		return q.contend(ctx, key, admitted, acq, try)
	})
}

// contend is the rest of acquire for a call that was admitted.
func (q *queueLock) contend(
	ctx context.Context, key ownerKey, admitted admission, acq *telemetry.Acquire, try bool,
) (*Lease, error) {
	for {
		switch {
		case admitted.lease != nil:
			acq.Join()
			return reentered(admitted.lease), nil
		case admitted.outcome == nil:
			admitted.entry.observe(acq)
			return q.attempt(ctx, admitted.entry, try)
		case try && !admitted.trying:
			q.leave(admitted.entry, try)
			return nil, ErrHeld
		}
		if err := wait(ctx, admitted.outcome); err != nil {
			err = contender.WaitErrorOf(ctx, q.queue, q.path, admitted.attempt, err)
			q.leave(admitted.entry, try)
			return nil, err
		}
		var err error
		if admitted, err = q.admit(ctx, key, admitted.entry, try); err != nil {
			return nil, err
		}
	}
}

// reentered returns the lease, which has joined a hold, and notifies the hold's telemetry.
func reentered(l *Lease) *Lease {
	contender.ShareOf(l).Reentered()
	return l
}

// attempt drives e's attempt. [waitqueue.Attempt.Run] enters the queue, waits until no contender is
// ahead, and then has the session's existence proven. If it fails while another goroutine of the
// caller waits for the outcome, that goroutine takes the attempt over, with its place in the queue.
// Otherwise the attempt is withdrawn.
func (q *queueLock) attempt(ctx context.Context, e *entry, try bool) (*Lease, error) {
	var grant *waitqueue.Grant
	return contender.RunAttempt(ctx, func() (err error) {
		if try {
			grant, err = e.attempt.Try(ctx)
			return contender.HeldError(err)
		}
		grant, err = e.attempt.Run(ctx)
		return err
	}, func() *Lease {
		return q.lease(ctx, e, grant)
	}, func(err error) error {
		defer q.abandon(e)
		if try {
			return err
		}
		return contender.WaitErrorOf(ctx, q.queue, q.path, e.attempt, err)
	})
}

// lease ends the driving of e's attempt with a lease of the grant.
func (q *queueLock) lease(ctx context.Context, e *entry, grant *waitqueue.Grant) *Lease {
	l := q.cfg.newLease(hold.Options{
		Client: grant.Client,
		Path:   q.path,
		Grant:  &contender.Grant{Grant: grant, Of: q.path, Recipe: recipe},
		Znode:  &grant.Znode,
		Hooks:  e.acq.Granted(ctx, grant.Fence(), grant.Session.Session()),
		Ended:  func(h *hold.Hold, lost error) { q.owners.ended(e, h, lost) },
	})
	e.observe(nil)
	q.owners.granted(e, grant, contender.ShareOf(l).Hold())
	return l
}

// newEntry returns an entry whose attempt has not begun. For a downgrade, write is the caller's entry
// of the write side, which it holds; otherwise write is nil.
func (q *queueLock) newEntry(key ownerKey, write *entry) *entry {
	e := &entry{lock: q, key: key}
	data := func() []byte { return q.cfg.nodeData(q.queue.Client, key.caller, "", e.acq) }
	if write != nil {
		e.attempt = q.queue.NewDowngrade(write.grant, q.kind, data)
	} else {
		e.attempt = q.queue.NewAttempt(q.kind, data)
	}
	return e
}

// observe sets the telemetry of the attempt that the caller drives; nil means none.
func (e *entry) observe(acq *telemetry.Acquire) {
	e.acq = acq
	e.attempt.Telemetry = acq
}

// unlock releases the caller's latest lease, or returns ErrNotOwner for the operation. If another
// goroutine of the owner releases that lease first, unlock releases the one before.
func (q *queueLock) unlock(ctx context.Context, op string) error {
	for {
		l := q.owners.latest(q.key(callerOf(ctx)))
		if l == nil {
			return recipe.Error(q.queue.Client, op, q.path, ErrNotOwner)
		}
		if err := contender.ShareOf(l).Release(ctx); !errors.Is(err, ErrReleased) {
			return cause.Join(ctx, err)
		}
	}
}

// held returns the caller's lock count.
func (q *queueLock) held(ctx context.Context) int { return q.owners.count(q.key(callerOf(ctx))) }

// An admission is what a call finds in its caller's entry: a lease of the hold, an attempt that
// another goroutine drives until outcome is closed, or an attempt that the call has to drive.
type admission struct {
	entry   *entry // nil if the attempt is for the lock's other side
	lease   *Lease
	outcome <-chan struct{}
	attempt *waitqueue.Attempt // that is driven, with outcome
	trying  bool               // the attempt waits for no other contender
	upgrade *entry             // of the read side, which the caller holds while it asks for the write side
}

// admit finds what the call has to do. awaited is the entry that it has waited for, if any. If the
// caller holds the read side and asks for the write side, admit returns ErrUpgrade.
func (q *queueLock) admit(ctx context.Context, key ownerKey, awaited *entry, try bool) (admission, error) {
	for {
		found := q.enlist(key, awaited, try)
		awaited = nil
		switch {
		case found.upgrade != nil:
			// A deadline that has just passed ends the hold here, and the next round ignores it.
			if found.upgrade.hold.Check(); found.upgrade.hold.Err() == nil {
				return admission{}, ErrUpgrade
			}
		case found.lease != nil && found.entry.hold.Grant.Err() != nil:
			_ = found.lease.Release(ctx) // which returns the loss, and nothing else
		default:
			return found, nil
		}
	}
}

// reenter returns one more lease of the latest hold if that is the caller's. Else it returns nil, and
// admit finds the hold. It is a fast path that avoids the owners' mutex and map.
func (q *queueLock) reenter(ctx context.Context, c caller) *Lease {
	e := q.latest.Load()
	if e == nil || e.key.caller != c {
		return nil
	}
	share := e.hold.Join()
	if share != nil && e.hold.Grant.Err() != nil {
		_ = share.Release(ctx) // which returns the loss, and nothing else
		return nil
	}
	return (*Lease)(share)
}

// enlist finds or creates the entry and joins it. If the call has waited for an entry, it leaves
// the waiters and joins in one step. Otherwise an attempt that is handed over could be withdrawn in
// between.
func (q *queueLock) enlist(key ownerKey, awaited *entry, try bool) admission {
	o := q.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	if awaited != nil {
		awaited.stopWaitingLocked(try)
	}
	e := o.entries[key]
	if e != nil && e.hold != nil {
		if share := e.hold.Join(); share != nil {
			return admission{entry: e, lease: (*Lease)(share)}
		}
		o.removeLocked(e) // the hold has ended
		e = nil
	}
	if e == nil {
		other := q.otherLocked(key)
		switch {
		case other != nil && other.hold == nil:
			// A caller makes one attempt on a lock at a time. Its outcome decides what the call
			// means.
			return admission{outcome: other.outcomeLocked(), attempt: other.attempt, trying: other.trying}
		case other != nil && q.kind == writeKind:
			return admission{upgrade: other}
		}
		e = q.newEntry(key, other)
		e.live = true
		o.entries[key] = e
	}
	if e.driven || try && e.lockers > 0 { // a try that drives would lose their place in the queue
		e.waiting++
		if !try {
			e.lockers++
		}
		return admission{entry: e, outcome: e.outcomeLocked(), attempt: e.attempt, trying: e.driven && e.trying}
	}
	e.driven, e.trying = true, try
	return admission{entry: e}
}

// stopWaitingLocked is called for a goroutine of the caller that has waited for the outcome. It needs
// owners.mu.
func (e *entry) stopWaitingLocked(try bool) {
	e.waiting--
	if !try {
		e.lockers--
	}
}

// otherLocked returns the caller's entry of the lock's other side, or nil. It needs owners.mu.
func (q *queueLock) otherLocked(key ownerKey) *entry {
	if q.other == "" {
		return nil
	}
	key.kind = q.other
	other := q.owners.entries[key]
	if other != nil && other.hold != nil && other.hold.Err() != nil {
		q.owners.removeLocked(other)
		return nil
	}
	return other
}

// leave ends the wait for e's outcome. A nil e is an entry of the other side, which does not count
// its waiters.
func (q *queueLock) leave(e *entry, try bool) {
	if e == nil {
		return
	}
	q.owners.mu.Lock()
	e.stopWaitingLocked(try)
	unwanted := q.owners.unwantedLocked(e)
	q.owners.mu.Unlock()
	if unwanted {
		e.attempt.Withdraw()
	}
}

// abandon ends the driving of e's attempt. Unless another goroutine of the caller takes it over,
// the attempt is withdrawn in the background.
func (q *queueLock) abandon(e *entry) {
	q.owners.mu.Lock()
	e.undrivenLocked()
	unwanted := q.owners.unwantedLocked(e)
	q.owners.mu.Unlock()
	if unwanted {
		e.attempt.Withdraw()
	}
}

func wait(ctx context.Context, outcome <-chan struct{}) error {
	select {
	case <-outcome:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
