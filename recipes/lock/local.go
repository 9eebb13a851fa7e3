package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/lease"
)

// A Local hands a mutex on among the goroutines of this process: a release grants it to the call that
// has waited longest for it at this Local, without any request. The mutex itself is released, to
// contenders elsewhere, when no call waits here or it was handed on max times in a row; the next
// call here then queues behind all contenders that wait elsewhere.
//
// It bends the order: a call that came later may be granted first if it is made here, by no more than max
// leases for each time that the mutex is granted to this Local.
//
// A Local is a [Locker] without owners: its leases are not re-entered, so a holder that locks again
// waits, forever if no other goroutine releases. It locks the mutex as an owner of its own. The
// function of [WithRevocation] gets the lease of the present holder.
//
// The leases of one grant of the mutex share its znode, so they have the same [Lease.Fence] and
// [Lease.Guard]: these tell holders in other processes apart, and not two goroutines that were
// handed the mutex one after another. A mutex that another client has asked its holder to release,
// by [Revoke], is not handed on. The methods of a Local may be called concurrently.
type Local struct {
	mutex Mutex // that the Local alone locks: what it is asked to release is the present lease
	max   int

	mu      sync.Mutex     // guards following; never held across a call of the mutex
	present *Lease         // of the Local; nil for none
	busy    bool           // a call has the turn: it holds the mutex, or is about to lock it
	waiting []*localWaiter // in the order of their coming
	handed  int            // how often the present lease was handed on
}

// A localWaiter is a call that waits for the turn.
type localWaiter struct {
	turn  chan struct{} // closed when it has the turn, with lease set first
	lease *Lease        // of the mutex, handed on; nil where the call has to lock the mutex
}

// NewLocal returns a Local of the mutex, that hands it on at most max times in a row. It returns all
// faults of the arguments: m must not be nil, and max at least 1.
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
	if revoked := m.queueLock.cfg.revoked; revoked != nil {
		l.mutex.queueLock.cfg.revoked = func(*Lease) { l.revoke(revoked) }
	}
	return l, nil
}

// Lock waits for the calls that came to this Local before, and then for the mutex if that is not
// handed on, and returns the lease. ctx bounds the wait only. Errors are those of [Mutex.Lock].
func (l *Local) Lock(ctx context.Context) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, callError(ctx, "lock", l.Path(), ctx.Err())
	}
	handed, err := l.await(ctx)
	if err != nil {
		return nil, callError(ctx, "lock", l.Path(), l.waitError(ctx, err))
	}
	switch {
	case handed == nil:
		return l.lock(ctx, l.mutex.Lock)
	case ctx.Err() != nil: // both at once: a caller that has gone gets no lease
		l.giveUp(handed)
		return nil, callError(ctx, "lock", l.Path(), l.waitError(ctx, ctx.Err()))
	case handed.Err() != nil: // lost on its way
		lease.ShareOf(handed).Discard()
		return l.lock(ctx, l.mutex.Lock)
	}
	return l.lease(handed), nil
}

// TryLock returns a lease, or [ErrHeld] where a call of this Local holds the mutex or waits for it, or
// another contender does. ctx bounds its requests.
func (l *Local) TryLock(ctx context.Context) (*Lease, error) {
	l.mu.Lock()
	busy := l.busy
	l.busy = true
	l.mu.Unlock()
	if busy {
		return nil, opError("try lock", l.Path(), ErrHeld)
	}
	return l.lock(ctx, l.mutex.TryLock)
}

// Path returns the mutex's path.
func (l *Local) Path() string { return l.mutex.Path() }

// waitError returns the WaitError of a wait for calls of this Local.
func (l *Local) waitError(ctx context.Context, err error) error {
	return contender.WaitError(ctx, l.mutex.queueLock.queue.Client, l.Path(), -1, nil, err)
}

// lock locks the mutex, for a call that has the turn.
func (l *Local) lock(ctx context.Context, lock func(context.Context) (*Lease, error)) (*Lease, error) {
	var granted *Lease
	defer func() {
		if granted == nil { // also if a function of the user's panicked
			l.pass(nil)
		}
	}()
	granted, err := lock(ContextWithOwner(ctx, NewOwner("local")))
	if err != nil {
		return nil, err
	}
	return l.lease(granted), nil
}

// lease returns a lease of the mutex's.
func (l *Local) lease(of *Lease) *Lease {
	g := &localGrant{local: l, lease: of}
	granted := lease.New(hold.Options{
		Client: lease.ShareOf(of).Hold().Client,
		Path:   l.Path(),
		Grant:  g,
		Hooks:  hold.NoHooks{}, // those of the mutex report
		Ended:  func(*hold.Hold, error) {},
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.passed { // else it was lost at once
		l.present = granted
	}
	return granted
}

// revoke calls the user's function with the present lease, if there is one.
func (l *Local) revoke(fn func(*Lease)) {
	l.mu.Lock()
	present := l.present
	l.mu.Unlock()
	if present != nil {
		fn(present)
	}
}

// await waits for the turn. It returns the lease that was handed on, nil if the call has to lock the mutex.
func (l *Local) await(ctx context.Context) (handed *Lease, err error) {
	l.mu.Lock()
	if !l.busy {
		l.busy = true
		l.mu.Unlock()
		return nil, nil //nolint:nilnil // see above
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

// quit ends w's wait. If it has the turn by now, it passes that on.
func (l *Local) quit(w *localWaiter) {
	l.mu.Lock()
	i := slices.Index(l.waiting, w)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 {
		l.giveUp(w.lease)
	}
}

// giveUp passes the turn on, and has the mutex released in the background if that is not handed on.
func (l *Local) giveUp(handed *Lease) {
	if !l.pass(handed) && handed != nil {
		lease.ShareOf(handed).Discard()
	}
}

// pass gives the turn to the call that has waited longest, with the mutex's lease, nil for none, if it
// may be handed on. It reports whether it was.
func (l *Local) pass(of *Lease) (handed bool) {
	valid := of != nil && of.Err() == nil && lease.ShareOf(of).Hold().Untouched()
	l.mu.Lock()
	defer l.mu.Unlock()
	handed = valid && len(l.waiting) > 0 && l.handed < l.max
	l.handed++
	if !handed {
		of, l.handed = nil, 0
	}
	if len(l.waiting) == 0 {
		l.busy = false
		return false
	}
	next := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	next.lease = of
	close(next.turn)
	return handed
}

// A localGrant is the grant of a [Local]: the mutex's lease, for one call.
type localGrant struct {
	local  *Local
	lease  *Lease
	passed bool // it has no turn any more; guarded by local.mu
}

// pass gives up the turn, with the mutex's lease or, if of is nil, without.
func (g *localGrant) pass(of *Lease) (handed bool) {
	g.local.mu.Lock()
	g.passed, g.local.present = true, nil
	g.local.mu.Unlock()
	return g.local.pass(of)
}

// Node returns the path of the mutex's znode.
func (g *localGrant) Node() string { return g.lease.Node() }

// Fence returns the fence of the mutex's lease.
func (g *localGrant) Fence() int64 { return g.lease.Fence() }

// Guard returns the guard of the mutex's lease.
func (g *localGrant) Guard() framework.TxnOp { return g.lease.Guard() }

// Deadline returns the deadline of the mutex's lease.
func (g *localGrant) Deadline() time.Time { return g.lease.Deadline() }

// Err returns why the mutex's lease is over.
func (g *localGrant) Err() error { return lossCause(g.lease.Err()) }

// OnLost has fn called when the mutex's lease is lost.
func (g *localGrant) OnLost(fn func(error)) {
	lease.ShareOf(g.lease).OnLost(func(err error) { fn(lossCause(err)) })
}

// lossCause returns the cause of a loss, or err itself if it is none.
func lossCause(err error) error {
	var lost *LostError
	if errors.As(err, &lost) {
		return lost.Cause
	}
	return err
}

// Release hands the mutex on, or releases it. The next call here gets the turn first, and queues
// behind the znode that is to be deleted.
func (g *localGrant) Release(ctx context.Context) error {
	if g.pass(g.lease) {
		return nil
	}
	return g.lease.Release(ctx)
}

// Discard has the mutex released in the background.
func (g *localGrant) Discard() {
	g.pass(nil)
	lease.ShareOf(g.lease).Discard()
}
