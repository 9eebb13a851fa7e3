package lock

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"

	"github.com/docent-go/docent/framework"
)

// ownWatchDelay is how long a lock that was free is held before a watch is set
// on its znode, by which an operator's deletion is noticed: a lock that is held
// shorter is spared the request, and any the watchdog.
const (
	ownWatchDelay = 50 * time.Millisecond
	ownWatchRetry = time.Second // after an error, as where the ACL forbids to read
)

// watchdog waits for what can cost the hold: the end of its session, the
// deletion of its znode, a broken connection where that counts. unwatched is how
// long there may still be no watch on the znode. It is started
// with the grant or a little later, ends when the hold is lost or released, and the
// release waits for it.
//
// A timer whose time has come is run by whoever looks at it. Where many holds are granted at
// one instant of a testing/synctest bubble, the race detector of Go 1.26 has crashed on that.
func (h *hold) watchdog(ctx context.Context, unwatched time.Duration) {
	defer close(h.vigil.ended)
	suspended := make(chan struct{})
	if h.policy == OnSuspend {
		defer h.onSuspend(suspended)()
	}
	own, told := h.grant.Own, fired(h.grant.Own)
	defer func() { h.leaveWatch(own) }()
	requests := &revocation{hold: h}
	requests.heed(ctx, own)             // one that came while it waited
	due := time.NewTimer(ownWatchRetry) // counts while there is no watch
	defer due.Stop()
	overdue := make(chan struct{}, 1) // instead of a timer of no time; see below
	switch {
	case own != nil:
		due.Stop()
	case unwatched > 0:
		due.Reset(unwatched)
	default:
		due.Stop()
		overdue <- struct{}{}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.grant.Hold.Lost():
			h.lose(h.grant.Hold.Err())
			return
		case <-suspended:
			h.lose(ErrSuspended)
			return
		case <-told:
		case <-overdue:
		case <-due.C:
		}
		closeWatch(own)
		next, err := h.watchOwn(ctx, suspended)
		if told = fired(next); err == nil {
			own = next // else it stays: what it told of has still to be looked into
		}
		if ctxerr.Is(err, framework.ErrNoNode) || err == nil && !h.owns(own) {
			h.lose(ErrNodeDeleted)
			return
		}
		if err != nil {
			due.Reset(ownWatchRetry) // that the session is over is told by the hold
		}
		requests.heed(ctx, next)
	}
}

// watchOwn sets a watch on the znode. What costs the hold ends its retries.
func (h *hold) watchOwn(ctx context.Context, suspended <-chan struct{}) (*framework.Watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		select {
		case <-h.grant.Hold.Lost():
		case <-suspended:
		case <-ctx.Done():
		}
		cancel()
	})
	return h.grant.Client.Watch(ctx, h.grant.Node, framework.WatchData)
}

// ownWatchDelay returns how long the watch on the znode may wait.
func (h *hold) ownWatchDelay() time.Duration {
	if h.revoked != nil {
		return 0 // requests are noticed by it, too
	}
	return ownWatchDelay
}

// owns reports whether what w watches is the znode that was granted, and not one
// that somebody else created at its path.
func (h *hold) owns(w *framework.Watch) bool {
	st, _ := w.Stat()
	return st.Czxid == h.grant.Stat.Czxid
}

// fired returns a channel that never delivers where there is no watch.
func fired(w *framework.Watch) <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.Fired()
}

func closeWatch(w *framework.Watch) {
	if w != nil {
		w.Close()
	}
}

// onSuspend closes suspended at the first state that is not Connected. If the connection broke
// between the grant and the registration, and is there again, only the number of breaks shows it.
func (h *hold) onSuspend(suspended chan struct{}) (remove func()) {
	var once sync.Once
	suspend := func() { once.Do(func() { close(suspended) }) }
	remove = h.grant.Client.OnState(func(change framework.StateChange) {
		if change.To != framework.Connected {
			suspend()
		}
	})
	if h.grant.Hold.Breaks() != h.breaks {
		suspend()
	}
	return remove
}
