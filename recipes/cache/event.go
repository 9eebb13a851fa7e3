package cache

import (
	"cmp"
	"fmt"
)

// An EventKind says what an [Event] is about.
type EventKind int

// The kinds of events.
const (
	// Added means that a znode was created, or found.
	Added EventKind = iota + 1
	// Changed means that a znode's data were written.
	Changed
	// Removed means that a znode was deleted, or can't be read any more. That the cache's own path
	// can't be read removes nothing.
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

// Path returns the path of the znode that was added, changed or removed, and "" for Ready and Stale.
func (e Event) Path() string { return cmp.Or(e.New.Path, e.Old.Path) }

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
