package cache

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
)

// Reasons for which a cache is not ready.
var (
	errFilling = errtype.New("the cache is being filled", errtype.Other)
	errBehind  = errtype.New("the cache has yet to read what has changed", errtype.Other)
	errUnseen  = errtype.New("changes may have been missed", errtype.Other)
)

// A state is how well a cache knows the tree.
type state struct {
	ready  bool
	filled bool      // it has been ready
	since  time.Time // it is not ready since then
	cause  error     // why it is not ready; never nil then
	had    int       // znodes when it was last ready
	fault  error     // why the path itself can't be read, nil if it can
	down   framework.StateChange
}

// current reports whether the server notifies of every change by now.
func (c *Cache) current() bool { return c.loop.valid() && c.client.State() == framework.Connected }

// onState is a listener of the client's states. It may be called late.
func (c *Cache) onState(change framework.StateChange) {
	if change.To == framework.Connected {
		return
	}
	cause := downCause(change)
	c.mu.Lock()
	c.state.down = change
	// If the server notifies of every change nevertheless, the loop will be told, and ends the state.
	stale := c.state.ready && !c.current() && c.becomeStaleLocked(change.At, cause)
	c.mu.Unlock()
	c.reportStale(stale, cause)
}

func downCause(change framework.StateChange) error {
	if change.Cause != nil {
		return change.Cause
	}
	return errors.New("the client is " + change.To.String())
}

// unseen says that changes may have been missed.
func (c *Cache) unseen() {
	c.mu.Lock()
	since, cause := time.Now(), errUnseen
	if down := c.state.down; down.At.After(c.state.since) {
		since, cause = down.At, downCause(down)
	}
	stale := c.becomeStaleLocked(since, cause)
	c.mu.Unlock()
	c.reportStale(stale, cause)
}

// becomeStaleLocked ends the state of being ready, if that is the state. It needs mu. Its caller has to
// call reportStale with what it returns, without mu.
func (c *Cache) becomeStaleLocked(since time.Time, cause error) (stale bool) {
	if !c.state.ready {
		return false
	}
	c.state.ready, c.state.since, c.state.cause, c.state.had = false, since, cause, c.view.Load().Len()
	c.signalLocked()
	c.listeners.Notify(notice{events: []Event{{Kind: Stale, Err: cause}}})
	return true
}

// reportStale tells the user's meter and log that the cache has become stale, if it has.
func (c *Cache) reportStale(stale bool, cause error) {
	if stale {
		c.telemetry.became(c.ctx, int(Stale), true)
		c.log.Info("cache is stale", c.fields(zap.Error(cause))...)
	}
}

// hintGone is the hint of a cache that was ready, and has nothing after an outage.
const hintGone = "the path was deleted, or the servers lost their data: restore a snapshot, or write the data again"

// becomeReady says that the cache is filled, unless the connection has been lost since.
func (c *Cache) becomeReady(took time.Duration) {
	n, had, became := c.nowReady()
	if !became {
		return
	}
	c.telemetry.became(c.ctx, int(Ready), false)
	c.telemetry.filled(c.ctx, took)
	level, hint := zap.InfoLevel, zap.Skip()
	if n == 0 && had > 0 {
		level, hint = zap.WarnLevel, zap.String("hint", hintGone)
	}
	c.log.Log(level, "cache is ready", c.fields(zap.Int(metricNodes, n), zap.Duration("took", took), hint)...)
}

// nowReady makes the cache ready. It returns how many znodes the cache has, and had when it was last
// ready.
func (c *Cache) nowReady() (n, had int, became bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.ready || c.state.fault != nil || !c.current() {
		return 0, 0, false
	}
	c.state.ready, c.state.filled, c.state.since = true, true, time.Now()
	c.signalLocked()
	c.listeners.Notify(notice{events: []Event{{Kind: Ready}}})
	return c.view.Load().Len(), c.state.had, true
}

// setCause keeps why the cache is not ready yet.
func (c *Cache) setCause(err error) {
	c.log.Debug("cannot fill the cache", c.fields(zap.Error(err))...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.ready {
		c.state.cause = err
		c.signalLocked()
	}
}

// setFault keeps why the path itself can't be read, nil if it can be.
func (c *Cache) setFault(err error) {
	c.mu.Lock()
	stale := err != nil && c.becomeStaleLocked(time.Now(), err)
	c.state.fault = err
	c.signalLocked()
	c.mu.Unlock()
	c.reportStale(stale, err)
}

// publish makes now what the cache has. The events lead to it.
func (c *Cache) publish(now Snapshot, events []Event) {
	if tell := c.loop.bounds.LeftOut; tell != nil {
		tell(now.leftOut)
	}
	if more, changed := c.replace(now, events); changed && len(events) > 0 {
		c.telemetry.changed(c.ctx, events, more)
	}
}

// replace makes now what the cache has, and returns how many znodes more that are. changed is false if that
// is what the cache had.
func (c *Cache) replace(now Snapshot, events []Event) (more int, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.view.Load()
	same := now.tree == old.tree && now.unread == old.unread && now.leftOut == old.leftOut
	if len(events) == 0 && same && (old.settled || !now.settled) {
		return 0, false
	}
	view := now // which alone is allocated
	c.view.Store(&view)
	c.signalLocked()
	if len(events) > 0 {
		c.listeners.Notify(notice{events: events})
	}
	return now.Len() - old.Len(), true
}

// endTelemetry takes back what the cache counts for in metrics.
func (c *Cache) endTelemetry() {
	c.mu.Lock()
	n, stale := c.view.Load().Len(), !c.state.ready
	c.mu.Unlock()
	c.telemetry.closed(c.ctx, n, stale)
}

func (c *Cache) signalLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// fields returns what all log lines of the cache have, and more.
func (c *Cache) fields(more ...zap.Field) []zap.Field {
	return append([]zap.Field{zap.String(zktel.AttrNodePath, c.client.AbsolutePath(c.path))}, more...)
}

// await waits until the loop has read all that it has been notified of by now.
func (c *Cache) await(ctx context.Context) error {
	done := c.loop.sync()
	for {
		c.mu.Lock()
		changed, st := c.changed, c.state
		c.mu.Unlock()
		select {
		case <-done:
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.state.fault // of the latest attempt to read the path
		case <-changed:
		case <-ctx.Done():
			if st.ready {
				return c.ended(ctx, errBehind)
			}
			return c.ended(ctx, st.cause)
		}
	}
}
