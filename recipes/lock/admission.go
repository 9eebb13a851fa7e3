package lock

import "context"

// An admission is what a call finds in its caller's entry: a lease of the hold, an attempt that
// another goroutine drives until outcome is closed, or an attempt that the call has to drive.
type admission struct {
	entry   *entry // nil if the attempt is for the lock's other side
	lease   *Lease
	outcome <-chan struct{}
	trying  bool   // the attempt waits for no other contender
	upgrade *entry // of the read side, which the caller holds while it asks for the write side
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

// enlist finds or creates the entry and joins it. If the call has waited for an entry, it leaves
// the waiters and joins in one step. Otherwise an attempt that is handed over could be withdrawn in
// between.
func (q *queueLock) enlist(key ownerKey, awaited *entry, try bool) admission {
	o := q.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	if awaited != nil {
		awaited.waiting--
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
			return admission{outcome: other.outcomeLocked(), trying: other.trying}
		case other != nil && q.kind == writeKind:
			return admission{upgrade: other}
		}
		e = q.newEntry(key, other)
		e.live = true
		o.entries[key] = e
	}
	if e.driven {
		e.waiting++
		return admission{entry: e, outcome: e.outcomeLocked(), trying: e.trying}
	}
	e.driven, e.trying = true, try
	return admission{entry: e}
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
func (q *queueLock) leave(e *entry) {
	if e == nil {
		return
	}
	q.owners.mu.Lock()
	defer q.owners.mu.Unlock()
	e.waiting--
	q.withdrawUnwantedLocked(e)
}

// abandon ends the driving of e's attempt. Unless another goroutine of the caller takes it over,
// the attempt is withdrawn in the background.
func (q *queueLock) abandon(e *entry) {
	q.owners.mu.Lock()
	defer q.owners.mu.Unlock()
	e.undrivenLocked()
	q.withdrawUnwantedLocked(e)
}

// withdrawUnwantedLocked withdraws the attempt if no goroutine of the caller wants it. It needs
// owners.mu; withdrawing only hands the znode to the client.
func (q *queueLock) withdrawUnwantedLocked(e *entry) {
	if q.owners.unwantedLocked(e) {
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
