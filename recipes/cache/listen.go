package cache

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/docent-go/docent/internal/usercall"
)

// OnEvent calls fn with all znodes that the cache has, as Added, and with Ready or Stale if it has
// been filled. Then it calls fn with every event, in order, none dropped. The calls follow one
// another on a goroutine of their own, so fn may block, call the cache and close it. The events that
// a slow fn has yet to see are kept without a bound. remove ends the calls and waits for one that is
// running, except when called from inside it. Close ends them, too. A panic of fn is logged. OnEvent
// panics if fn is nil.
func (c *Cache) OnEvent(fn func(Event)) (remove func()) {
	usercall.Require("fn", fn != nil)
	var removed atomic.Bool
	deliver := func(n notice) {
		n.each(func(e Event) {
			if !removed.Load() && c.ctx.Err() == nil {
				usercall.Guard(c.log, "OnEvent", func() { fn(e) })
			}
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := notice{all: c.view.Load()}
	switch {
	case c.state.ready:
		first.events = []Event{{Kind: Ready}}
	case c.state.filled:
		first.events = []Event{{Kind: Stale, Err: c.state.cause}}
	}
	end := c.listeners.AddWith(first, deliver)
	return func() {
		removed.Store(true)
		end()
	}
}

// Events returns the events that [Cache.OnEvent] would call a function with. The sequence ends when
// ctx ends, when the cache or its client is closed, or when the loop that ranges over it is left.
func (c *Cache) Events(ctx context.Context) iter.Seq[Event] {
	usercall.Require("ctx", ctx != nil)
	return func(yield func(Event) bool) {
		events := make(chan Event)
		ctx, cancel := context.WithCancel(ctx)
		remove := c.OnEvent(func(e Event) {
			select {
			case events <- e:
			case <-ctx.Done():
			case <-c.ctx.Done():
			}
		})
		defer remove()
		defer cancel() // before remove, which waits for the function
		for {
			select {
			case e := <-events:
				if !yield(e) {
					return
				}
			case <-ctx.Done():
				return
			case <-c.ctx.Done():
				return
			}
		}
	}
}

// Snapshots returns the present snapshot once the cache is ready. Then it returns the latest one
// whenever that has changed or has become settled. While the client may not read the path itself, the
// error says so: it is the one that [Cache.Ready] returns. It is returned once, with what the cache
// has, and the next element without an error follows when the cache is ready again. No error and no
// outage ends the sequence. It ends as [Cache.Events] does.
func (c *Cache) Snapshots(ctx context.Context) iter.Seq2[*Snapshot, error] {
	usercall.Require("ctx", ctx != nil)
	return func(yield func(*Snapshot, error) bool) {
		var last *Snapshot
		var failed error // as returned last; nil if the last element had none
		for ctx.Err() == nil && c.ctx.Err() == nil {
			c.mu.Lock()
			view, st, changed := c.view.Load(), c.state, c.changed
			c.mu.Unlock()
			goes := true
			switch {
			case st.fault != nil && (failed == nil || failed.Error() != st.fault.Error()):
				last, failed = view, st.fault
				goes = yield(view, recipe.Error(c.client, "read", c.path, st.fault))
			case st.ready && failed != nil, st.filled && failed == nil && view != last:
				last, failed = view, nil
				goes = yield(view, nil)
			default:
				select {
				case <-changed:
				case <-ctx.Done():
				case <-c.ctx.Done():
				}
			}
			if !goes {
				return
			}
		}
	}
}
