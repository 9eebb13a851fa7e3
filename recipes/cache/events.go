package cache

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/treecopy"
)

// An EventKind says what an [Event] is about.
type EventKind int

// The kinds of events.
const (
	// Added means that a znode was created, or found.
	Added EventKind = iota + 1
	// Changed means that a znode's data were written.
	Changed
	// Removed means that a znode was deleted, or can't be read any more.
	Removed
	// Ready means that the cache is filled: see [Cache.Ready].
	Ready
	// Stale means that the cache may be behind from now on: see [Cache.Stale]. Ready follows.
	Stale
)

// String returns the kind's name, as in "added".
func (k EventKind) String() string {
	if k < Added || k > Stale {
		return fmt.Sprintf("EventKind(%d)", int(k))
	}
	return kindNames()[k]
}

// kindNames returns the names of the kinds, by kind.
func kindNames() []string { return []string{"", "added", "changed", "removed", "ready", "stale"} }

// An Event is a change of what a cache has, or of how well it is known.
type Event struct {
	Kind EventKind
	Old  Node  // of Changed and Removed
	New  Node  // of Added and Changed
	Err  error // of Stale: why
}

// eventsOf returns the events of the changes, and how many there are by kind.
func eventsOf(changes []treecopy.Change) (events []Event, counts [Stale + 1]int64) {
	for _, change := range changes {
		e := Event{Kind: Changed}
		switch {
		case change.Old == nil:
			e.Kind = Added
		case change.New == nil:
			e.Kind = Removed
		}
		if change.Old != nil {
			e.Old = Node(*change.Old)
		}
		if change.New != nil {
			e.New = Node(*change.New)
		}
		events = append(events, e)
		counts[e.Kind]++
	}
	return events, counts
}

// A notice is what listeners are notified of at a time.
type notice struct {
	all    *Snapshot // as Added, before the events; nil for none
	events []Event
}

func (n notice) each(yield func(Event)) {
	if n.all != nil {
		for _, node := range n.all.All() {
			yield(Event{Kind: Added, New: node})
		}
	}
	for _, e := range n.events {
		yield(e)
	}
}

// OnEvent calls fn with all znodes that the cache has, as Added, and with Ready or Stale if it has
// been filled. Then it calls fn with every event, in order, none dropped. The calls follow one another on a goroutine of
// their own, so fn may block, call the cache and close it. The events that a slow fn has yet to see
// are kept without a bound. remove ends the calls and waits for one that is running, except when
// called from inside it. Close ends them, too. A panic of fn is logged. OnEvent panics if fn is nil.
func (c *Cache) OnEvent(fn func(Event)) (remove func()) {
	if fn == nil {
		panic("cache: OnEvent with a nil function")
	}
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
// whenever that has changed or has become settled. It ends as [Cache.Events] does.
func (c *Cache) Snapshots(ctx context.Context) iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		if c.Ready(ctx) != nil { // the sequence is empty then
			return
		}
		var last *Snapshot
		for ctx.Err() == nil && c.ctx.Err() == nil {
			c.mu.Lock()
			view, changed := c.view.Load(), c.changed
			c.mu.Unlock()
			if view != last {
				if last = view; !yield(view) {
					return
				}
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
			case <-c.ctx.Done():
			}
		}
	}
}
