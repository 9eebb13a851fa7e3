package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/lease"
)

// A Local hands a mutex on among the goroutines of this process. A release grants it, without any
// request, to the call that has waited longest at this Local. After max hand-offs in a row, or if
// no call waits here, the mutex is released to contenders elsewhere. The next call here then queues
// behind all of them.
//
// The order across processes changes: a later call may be granted first if it is made here. For
// each grant of the mutex to this Local, at most max leases overtake.
//
// A Local is a [Locker] without owners. Its leases are not re-entered, so a holder that locks again
// waits, forever if no other goroutine releases. The Local itself is the owner of the mutex. The
// function of WithRevocation gets the lease of the present holder.
//
// The leases of one grant of the mutex share its znode, so they have the same [lease.Lease.Fence] and
// [lease.Lease.Guard]. These distinguish holders in different processes, but not two goroutines that were
// handed the mutex one after another. If another client has asked the holder to release, by
// [Revoke], the mutex is not handed on. The methods of a Local may be called concurrently.
type Local struct {
	mutex Mutex // only the Local locks it, so a revocation concerns the present lease
	max   int

	mu      sync.Mutex     // guards following; never held across a call of the mutex
	present *Lease         // of the Local; nil for none
	under   *hold.Hold     // of the mutex, that present rests on; nil with present
	moved   chan struct{}  // closed, and nil again, when a request to release has to look again; nil for no request
	busy    bool           // a call has the turn: it holds the mutex, or is about to lock it
	waiting []*localWaiter // in the order of their arrival
	handed  int            // how often the present lease was handed on
}

// A localWaiter is a call that waits for the turn.
type localWaiter struct {
	turn  chan struct{} // closed when it has the turn, with lease set first
	lease *Lease        // of the mutex, handed on; nil if the call has to lock the mutex
}

// NewLocal returns a Local that hands the mutex on at most max times in a row. If m is nil or max
// is below 1, NewLocal returns all faults.
func NewLocal(m *Mutex, max int) (*Local, error) {
	var faults []error
	if m == nil {
		faults = append(faults, errors.New("mutex: must not be nil"))
	}
	if max < 1 {
		faults = append(faults, fmt.Errorf("max %d: must be at least 1", max))
	}
	if faults != nil {
		return nil, fmt.Errorf("lock: new local: %w", errors.Join(faults...))
	}
	l := &Local{mutex: *m, max: max}
	l.mutex.queueLock.cfg.handoff = true
	if revoked := m.queueLock.cfg.Revocation; revoked != nil {
		l.mutex.queueLock.cfg.Revocation = func(inner *Lease) { l.revoke(inner, revoked) }
	}
	return l, nil
}

// Lock waits for the earlier calls of this Local and returns the lease. If the mutex is not handed
// on, Lock also waits for the mutex. ctx bounds the wait only. Errors are those of [Mutex.Lock].
func (l *Local) Lock(ctx context.Context) (*Lease, error) {
	usercall.Require("ctx", ctx != nil)
	if ctx.Err() != nil {
		return nil, recipe.CallError(ctx, l.mutex.queueLock.queue.Client, "lock", l.Path(), ctx.Err())
	}
	handed, err := l.await(ctx)
	if err != nil {
		return nil, recipe.CallError(ctx, l.mutex.queueLock.queue.Client, "lock", l.Path(), l.waitError(ctx, err))
	}
	return l.lock(ctx, "lock", handed, l.mutex.Lock)
}

// TryLock returns a lease, or [ErrHeld] if another call of this Local or another contender holds
// the mutex or waits for it. ctx and the connect timeout bound its requests: see [Locker].
func (l *Local) TryLock(ctx context.Context) (*Lease, error) {
	l.mu.Lock()
	busy := l.busy
	l.busy = true
	l.mu.Unlock()
	if busy {
		return nil, recipe.Error(l.mutex.queueLock.queue.Client, "try lock", l.Path(), ErrHeld)
	}
	return l.lock(ctx, "try lock", nil, l.mutex.TryLock)
}

// Path returns the mutex's path.
func (l *Local) Path() string { return l.mutex.Path() }

// waitError returns the WaitError of a wait for calls of this Local.
func (l *Local) waitError(ctx context.Context, err error) error {
	return contender.WaitError(ctx, l.mutex.queueLock.queue.Client, l.Path(), 1, nil, err) // the holder is ahead
}

// lock returns a lease of the mutex's, for a call that has the turn. Unless that lease was handed on, and is
// still held, lock locks the mutex.
func (l *Local) lock(
	ctx context.Context, op string, inner *Lease, lock func(context.Context) (*Lease, error),
) (*Lease, error) {
	return contender.RunAttempt(ctx, func() (err error) {
		if inner != nil && inner.Err() != nil { // lost during the hand-off
			contender.ShareOf(inner).Discard()
			inner = nil
			l.ended()
		}
		if inner == nil {
			inner, err = lock(ContextWithOwner(ctx, NewOwner("local")))
		}
		return err
	}, func() *Lease {
		return l.lease(inner)
	}, func(err error) error {
		if inner != nil { // ctx has ended
			err = recipe.CallError(ctx, l.mutex.queueLock.queue.Client, op, l.Path(), l.waitError(ctx, err))
		}
		l.withdraw(inner)
		return err
	})
}

// lease returns a lease of the mutex's lease.
func (l *Local) lease(inner *Lease) *Lease {
	g := &localGrant{Lease: inner, local: l}
	granted := contender.NewLease(hold.Options{ // without hooks: those of the mutex's lease report
		Client: contender.ShareOf(inner).Hold().Client,
		Path:   l.Path(),
		Grant:  g,
	}, lease.AtDeadline, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.passed { // otherwise it was lost at once
		l.present, l.under = granted, contender.ShareOf(inner).Hold()
	}
	l.moveLocked()
	return granted
}

// revoke calls the user's function with the present lease of the mutex's lease. If that is being handed
// on, or was granted a moment ago, revoke waits for the next lease of the Local, or the end of the
// mutex's. It runs on the goroutine of the mutex's revocations.
func (l *Local) revoke(inner *Lease, fn func(*Lease)) {
	for {
		l.mu.Lock()
		present := l.present
		if present != nil && l.under != contender.ShareOf(inner).Hold() {
			present = nil
		}
		if l.moved == nil {
			l.moved = make(chan struct{})
		}
		moved := l.moved
		l.mu.Unlock()
		switch {
		case present != nil:
			fn(present)
			return
		case inner.Err() != nil: // released, or lost
			return
		}
		<-moved
	}
}

// moveLocked makes a request to release look again. It needs mu.
func (l *Local) moveLocked() {
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}

// ended makes a request to release look again, because a lease of the mutex is over.
func (l *Local) ended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moveLocked()
}

// await waits for the turn. It returns the lease that was handed on, nil if the call has to lock the mutex.
func (l *Local) await(ctx context.Context) (handed *Lease, err error) {
	l.mu.Lock()
	if !l.busy {
		l.busy = true
		l.mu.Unlock()
		return nil, nil //nolint:nilnil // the call has to lock the mutex
	}
	w := &localWaiter{turn: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	select {
	case <-w.turn:
		return w.lease, nil
	case <-ctx.Done():
		l.quit(w)
		return nil, ctx.Err()
	}
}

// quit ends w's wait. If w has the turn by then, quit passes it on.
func (l *Local) quit(w *localWaiter) {
	l.mu.Lock()
	i := slices.Index(l.waiting, w)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 {
		l.withdraw(w.lease)
	}
}

// withdraw passes the turn on. If the mutex is not handed on, it is released in the background.
func (l *Local) withdraw(handed *Lease) {
	if !l.pass(handed) && handed != nil {
		contender.ShareOf(handed).Discard()
		l.ended()
	}
}

// pass gives the turn to the call that has waited longest, with the mutex's lease if that may be
// handed on. inner is nil for none. pass reports whether the lease was handed on.
func (l *Local) pass(inner *Lease) (handed bool) {
	valid := inner != nil && inner.Err() == nil && contender.ShareOf(inner).Hold().Untouched()
	l.mu.Lock()
	defer l.mu.Unlock()
	handed = valid && len(l.waiting) > 0 && l.handed < l.max
	l.handed++
	if !handed {
		inner, l.handed = nil, 0
	}
	if len(l.waiting) == 0 {
		l.busy = false
		return false
	}
	next := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	next.lease = inner
	close(next.turn)
	return handed
}

// A localGrant is the grant of a [Local]: the mutex's lease, for one call. Its node, fence, guards and
// deadline are those of the mutex's lease.
type localGrant struct {
	*Lease
	local  *Local
	passed bool // it has no turn any more; guarded by local.mu
}

// pass passes the turn on, with the mutex's lease or, if inner is nil, without.
func (g *localGrant) pass(inner *Lease) (handed bool) {
	g.local.mu.Lock()
	g.passed, g.local.present, g.local.under = true, nil, nil
	g.local.mu.Unlock()
	return g.local.pass(inner)
}

// Err returns why the mutex's lease is over.
func (g *localGrant) Err() error { return lossCause(g.Lease.Err()) }

// OnLost registers notify and after for the loss of the mutex's lease.
func (g *localGrant) OnLost(notify func(error), after func()) {
	contender.ShareOf(g.Lease).OnLost(func(err error) { notify(lossCause(err)) }, after)
}

// lossCause returns the cause of a loss, or err itself if it is none.
func lossCause(err error) error {
	var lost *LostError
	if errors.As(err, &lost) {
		return lost.Cause
	}
	return err
}

// Release hands the mutex on, or releases it. The next call here gets the turn before the release,
// so it queues behind the znode that is about to be deleted.
func (g *localGrant) Release(ctx context.Context) error {
	if g.pass(g.Lease) {
		return nil
	}
	defer g.local.ended()
	return g.Lease.Release(ctx)
}

// Discard releases the mutex in the background.
func (g *localGrant) Discard() {
	g.pass(nil)
	contender.ShareOf(g.Lease).Discard()
	g.local.ended()
}
