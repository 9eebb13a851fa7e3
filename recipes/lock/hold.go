package lock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/queue"
)

// A hold is one party's stake in a lock: its attempt, and then the znode and the
// leases that share it. With registry.mu held:
//
//   - a hold is in registry.holds from the start of its attempt until it is
//     given up, released or lost; then a new attempt is independent of it;
//   - exactly one goroutine drives an attempt, or, for a moment, none: then
//     those who wait for it have been woken, and one of them takes over;
//   - grant is set once, and leases is not empty from then on until the hold
//     leaves the registry;
//   - err is set once, before lost is closed, and only while there are leases.
type hold struct {
	registry *registry
	key      holdKey
	path     string // of the lock, as its user gave it
	policy   LossPolicy
	revoked  func(*Lease) // told of requests to let go; nil for nobody
	handoff  int          // how often its znode may be passed on in a row; 0 for never

	attempt *queue.Attempt // only for the goroutine that drives
	seen    *acquiring     // what telemetry follows of the attempt; likewise
	lost    chan struct{}  // closed on loss, once

	means []framework.DeleteOption // tell its znode from others at the path; none where the name does
	joint *joint                   // what it is made of, if it is a Multi's; else nil
	left  func()                   // called when it has ended; nil for nobody
	rest  <-chan struct{}          // closed when what the attempt left behind is gone; nil for nothing

	stop    func()        // ends the watchdog, or keeps it from being started
	watched chan struct{} // closed when the watchdog has ended, or will not be started

	// guarded by registry.mu
	driven    bool
	trying    bool          // the attempt waits for nobody
	changed   chan struct{} // closed and replaced when the driver leaves; closed when the attempt is given up
	waiting   int           // goroutines of the party that wait for the driver
	grant     *queue.Grant
	held      *holding      // what telemetry follows of the grant; set with it
	unwatched time.Duration // how long there may be no watch on the znode
	leases    []*Lease      // in the order of their locking
	err       error

	// guarded by registry.mu, too, and zero without local hand-off
	relay    *relay       // where it has the turn; nil if it has none
	passed   *queue.Grant // what was passed on to it
	numbered bool         // its fence or guard is in use
}

// leaseLocked adds a lease. It needs registry.mu.
func (h *hold) leaseLocked() *Lease {
	l := &Lease{hold: h}
	h.leases = append(h.leases, l)
	h.held.leased(l, len(h.leases))
	return l
}

// grantedLocked takes the grant and has the watchdog started, where that can wait
// once it has something to do: the hold has lasted as long as it may go unwatched, or
// the watch fires. That its session ends is told by the session. It needs registry.mu.
func (h *hold) grantedLocked(g *queue.Grant) {
	h.grant = g
	h.unwatched = h.ownWatchDelay()
	if h.relay != nil {
		h.unwatched = h.relay.left(h.unwatched, h.passed == nil)
	}
	ctx, stop := context.WithCancel(context.Background()) // the hold's own life
	h.stop, h.watched = stop, make(chan struct{})
	g.Hold.OnLost(h.lose) // at once; the watchdog has to be woken first
	if h.policy == OnSuspend || h.revoked != nil || h.unwatched <= 0 {
		go h.watchdog(ctx, h.unwatched)
		return
	}
	own := g.Own
	var prevent func() bool
	if own == nil {
		prevent = time.AfterFunc(h.unwatched, func() { h.watchdog(ctx, 0) }).Stop
	} else {
		unwatched := h.unwatched
		prevent = own.AfterFire(func() { h.watchdog(ctx, unwatched) })
	}
	h.stop = func() {
		stop()
		if prevent() {
			h.leaveWatch(own)
			close(h.watched)
		}
	}
}

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
func (h *hold) watchdog(ctx context.Context, unwatched time.Duration) {
	defer close(h.watched)
	suspended := make(chan struct{})
	if h.policy == OnSuspend {
		defer h.onSuspend(suspended)()
	}
	own, told := h.grant.Own, fired(h.grant.Own)
	defer func() { h.leaveWatch(own) }()
	requests := &revocation{hold: h}
	requests.heed(ctx, own)         // one that came while it waited
	due := time.NewTimer(unwatched) // counts while there is no watch
	defer due.Stop()
	if own != nil {
		due.Stop()
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

// onSuspend closes suspended at the first state that is not Connected.
func (h *hold) onSuspend(suspended chan struct{}) (remove func()) {
	told := false
	return h.grant.Client.OnState(func(change framework.StateChange) {
		if change.To != framework.Connected && !told {
			told = true
			close(suspended)
		}
	})
}

// lose ends the hold and all its leases, for the first cause that is given. The
// znode goes in the background, if it still stands.
func (h *hold) lose(cause error) {
	r := h.registry
	r.mu.Lock()
	if h.err != nil || len(h.leases) == 0 {
		r.mu.Unlock()
		return
	}
	lost := &LostError{Path: h.path, Cause: cause}
	h.err = lost
	r.leaveLocked(h)
	r.lost[h.key] = append(r.lost[h.key], h)
	close(h.lost)
	leases := slices.Clone(h.leases)
	var joined []*hold
	for _, l := range leases {
		if l.joined != nil {
			joined = append(joined, l.joined)
		}
	}
	r.mu.Unlock()
	for _, l := range leases {
		l.endContexts(h.err)
	}
	h.tellLost(lost)
	for _, multi := range joined {
		multi.lose(h.err)
	}
	h.discard()
}

// discard has the znode deleted in the background, if it still stands.
func (h *hold) discard() {
	if h.joint != nil {
		h.joint.discard()
		return
	}
	h.stop()
	h.grant.Client.Discard(h.grant.Node, h.means...)
	h.tellGivenUp()
	h.leave()
}

// leave ends what outlives the leases.
func (h *hold) leave() {
	h.leaveRelay()
	h.grant.Hold.Release()
	if h.left != nil {
		h.left()
	}
}

// undrivenLocked takes note that nobody drives the attempt any more: who waits
// for it may take over. It needs registry.mu.
func (h *hold) undrivenLocked() {
	h.driven = false
	close(h.changed)
	h.changed = make(chan struct{})
}

// unwantedLocked takes h out of the live holds if nobody wants its attempt any
// more, and reports whether that is so: then it is to be withdrawn. It needs mu.
func (r *registry) unwantedLocked(h *hold) bool {
	if h.driven || h.waiting > 0 || h.grant != nil || r.holds[h.key] != h {
		return false
	}
	r.leaveLocked(h)
	r.leaveRelayLocked(h, nil)
	close(h.changed) // for those of the lock's other side
	return true
}

// leaveLocked takes h out of the live holds. It needs mu.
func (r *registry) leaveLocked(h *hold) {
	if r.holds[h.key] == h {
		delete(r.holds, h.key)
	}
}

// dropLocked takes a lease off h, and reports whether it was the last.
func (r *registry) dropLocked(h *hold, l *Lease) (last bool) {
	if i := slices.Index(h.leases, l); i >= 0 {
		h.leases = slices.Delete(h.leases, i, i+1)
	}
	if len(h.leases) > 0 {
		return false
	}
	r.leaveLocked(h)
	if h.err != nil {
		r.lost[h.key] = slices.DeleteFunc(r.lost[h.key], func(other *hold) bool { return other == h })
		if len(r.lost[h.key]) == 0 {
			delete(r.lost, h.key)
		}
	}
	return true
}

// release gives the znode back. The deletion goes on in the background where it
// could not be confirmed.
func (h *hold) release(ctx context.Context) error {
	h.stopWatching()
	if h.passOn() {
		h.held.released(nil)
		return nil
	}
	h.leaveRelay() // the next one here goes to the end of the queue, behind this very znode
	if h.handoff > 0 {
		closeWatch(h.grant.Own)
	}
	err := h.grant.Client.Delete(ctx, h.grant.Node, append(h.means, framework.Guaranteed())...)
	return h.deleted(ctx, err)
}

func (h *hold) stopWatching() {
	h.stop()
	<-h.watched
}

// deleted ends what outlives the leases, and returns what the end of the
// znode's deletion means for the release.
func (h *hold) deleted(ctx context.Context, err error) (ended error) {
	defer func() { h.held.released(ended) }()
	if err == nil {
		h.grant.Left()
	}
	h.leave()
	switch {
	case ctxerr.Is(err, framework.ErrNoNode):
		return &LostError{Path: h.path, Cause: ErrNodeDeleted}
	case ctxerr.Is(err, framework.ErrSessionEnded), ctxerr.Is(err, framework.ErrClosed):
		return &LostError{Path: h.path, Cause: err}
	case err == nil && h.rest != nil:
		return wait(ctx, h.rest)
	}
	return err
}
