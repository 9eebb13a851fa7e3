package lock

import (
	"context"
	"time"
)

// A vigil is a hold's watchdog on its way: what is to start it, and then what ends it.
// A hold that is over before there is anything to watch for has none, and pays for a
// timer alone.
type vigil struct {
	hold *hold // set with the grant, as are the next three

	// What starts the watchdog: one of these, or nothing where it began at once.
	timer   *time.Timer
	disarm  func() bool // keeps a watch from starting it
	relayed bool        // the relay's timer does

	// guarded by registry.mu
	over   bool               // it is not to begin any more
	cancel context.CancelFunc // nil before it has begun
	ended  chan struct{}      // closed when the watchdog has ended; nil before it has begun
}

// keepVigilLocked has the watchdog started: now, or when the znode has been held as
// long as it may go unwatched, or when the watch on it fires. It needs registry.mu.
func (h *hold) keepVigilLocked() {
	v, rl, own, unwatched := &h.vigil, h.relay, h.grant.Own, h.ownWatchDelay()
	v.hold = h
	switch {
	case h.policy == OnSuspend || h.revoked != nil:
		if rl != nil {
			unwatched = rl.left(unwatched)
		}
		go h.watchdog(v.beginLocked(), unwatched)
	case own != nil:
		v.disarm = own.AfterFire(func() { v.keep(unwatched) })
	case rl == nil:
		v.timer = time.AfterFunc(unwatched, func() { v.keep(0) })
	case rl.unwatched:
		go h.watchdog(v.beginLocked(), 0)
	default:
		v.relayed = true
		rl.awaitLocked(unwatched)
	}
}

// keep is the watchdog that is started later.
func (v *vigil) keep(unwatched time.Duration) {
	mu := &v.hold.registry.mu
	mu.Lock()
	if v.over || v.cancel != nil {
		mu.Unlock()
		return
	}
	ctx := v.beginLocked()
	mu.Unlock()
	v.hold.watchdog(ctx, unwatched)
}

// beginLocked returns the context of the watchdog. It needs registry.mu.
func (v *vigil) beginLocked() context.Context {
	ctx, cancel := context.WithCancel(context.Background()) // the hold's own life
	v.cancel, v.ended = cancel, make(chan struct{})
	return ctx
}

// stop ends the watchdog, or keeps it from being started. It returns a channel that is
// closed when the watchdog has ended, nil where there is none to wait for. It is called
// once.
func (v *vigil) stop() (ended <-chan struct{}) {
	if !v.forestall() {
		mu := &v.hold.registry.mu
		mu.Lock()
		v.over = true
		cancel, ended := v.cancel, v.ended
		mu.Unlock()
		if cancel != nil {
			cancel()
			return ended
		}
	}
	if own := v.hold.grant.Own; own != nil {
		v.hold.leaveWatch(own)
	}
	return nil
}

// forestall reports whether what would start the watchdog was stopped in time.
func (v *vigil) forestall() bool {
	switch {
	case v.timer != nil:
		return v.timer.Stop()
	case v.disarm != nil:
		return v.disarm()
	}
	return false
}
