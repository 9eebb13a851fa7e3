package lock

import (
	"context"
	"slices"
	"time"

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
