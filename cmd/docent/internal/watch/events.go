package watch

import (
	"maps"
	"slices"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// Events returns what changed below root between two views. A view that is not current has its state
// alone: the locks of before are those of the last current view. If there was none, all contenders of
// after are events.
//
// The events are in the order of the locks' paths. Of one lock, those of the contenders that left come
// first.
func Events(root string, before, after inspect.View) []Event {
	if after.State != inspect.Current {
		if before.State == inspect.Current && after.State == inspect.Stale {
			return []Event{{What: Stale, At: after.Since, Path: root, Cause: after.Cause}}
		}
		return nil
	}
	d := difference{
		after: after, was: indexOf(before.Snapshot), is: indexOf(after.Snapshot),
		first: before.State != inspect.Current && before.State != inspect.Stale,
		blind: before.State == inspect.Stale,
	}
	if before.State != inspect.Current {
		d.events = append(d.events, Event{What: Live, At: after.At, Path: root})
	}
	paths := maps.Clone(d.was.locks)
	maps.Copy(paths, d.is.locks)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		d.left(d.was.locks[path])
		d.came(d.is.locks[path])
	}
	return d.events
}

// An index has the locks of a snapshot by path, and their contenders by znode.
type index struct {
	locks      map[string]inspect.Lock
	contenders map[string]inspect.Contender // by Znode, and by Turn
}

func indexOf(s inspect.Snapshot) index {
	i := index{map[string]inspect.Lock{}, map[string]inspect.Contender{}}
	for _, l := range s.Locks {
		i.locks[l.Path] = l
		for _, c := range l.Contenders {
			i.contenders[c.Znode] = c
			if c.Turn != "" {
				i.contenders[c.Turn] = c
			}
		}
	}
	return i
}

// find returns the contender of the index that is the same as c. A semaphore's contender has its znode
// in the queue first, and that of its permit later. An unfair mutex's znodes have one name.
func (i index) find(c inspect.Contender) (inspect.Contender, bool) {
	found, ok := i.contenders[c.Znode]
	if !ok && c.Turn != "" {
		found, ok = i.contenders[c.Turn]
	}
	same := found.Znode != c.Znode || found.Czxid == c.Czxid || found.Czxid == 0 || c.Czxid == 0
	return found, ok && same
}

// A difference collects events.
type difference struct {
	after  inspect.View
	was    index
	is     index
	first  bool // there was no view before
	blind  bool // the view before was stale
	events []Event
}

func (d *difference) add(what What, l inspect.Lock, c inspect.Contender) *Event {
	d.events = append(d.events, Event{
		What: what, At: d.after.At, Path: l.Path, Kind: l.Kind, Contender: c, Before: d.first, Unsure: d.blind,
	})
	return &d.events[len(d.events)-1]
}

// left adds the events of the lock's contenders that are not in the later view.
func (d *difference) left(l inspect.Lock) {
	for _, c := range l.Contenders {
		if _, stays := d.is.find(c); stays {
			continue
		}
		switch c.State {
		case inspect.Holds:
			d.add(Released, l, c)
		case inspect.Waits:
			e := d.add(Gone, l, c)
			e.Waited = d.waited(c)
			e.Unsure = e.Unsure || d.free(c)
		case inspect.Unknown: // no view shows what it did
		}
	}
}

// free reports whether the contender may have held: those ahead of it are gone, too.
func (d *difference) free(c inspect.Contender) bool {
	left := 0
	for _, znode := range c.WaitsFor {
		if _, there := d.is.contenders[znode]; !there {
			left++
		}
	}
	return left == len(c.WaitsFor) || c.AnyOf && left > 0
}

// came adds the events of the lock's contenders that are new, or have another state.
func (d *difference) came(l inspect.Lock) {
	for _, c := range l.Contenders {
		was, known := d.was.find(c)
		if c.Revoked && !(known && was.Revoked) {
			d.add(Revoked, l, c)
		}
		if known && was.State == c.State {
			continue
		}
		switch c.State {
		case inspect.Holds:
			e := d.add(Granted, l, c)
			if known && was.State == inspect.Waits {
				e.Waited = d.waited(was)
			}
		case inspect.Waits:
			d.add(Queued, l, c)
		case inspect.Unknown: // its znode is yet to be read
		}
	}
}

// waited returns for how long the contender has waited. The servers' clock may be ahead.
func (d *difference) waited(c inspect.Contender) time.Duration {
	if !c.Read() {
		return 0
	}
	return max(0, d.after.At.Sub(c.Created))
}
