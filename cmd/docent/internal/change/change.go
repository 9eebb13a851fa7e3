package change

import (
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// A Follower turns the views of a directory into events. One goroutine uses it.
type Follower struct {
	Root string
	last inspect.View // the locks of the last current view, and the state of the last view
}

// See returns what changed since the view before.
func (f *Follower) See(view inspect.View) []Event {
	events := Events(f.Root, f.last, view)
	if view.State == inspect.Current {
		view.Locks = keepHolders(f.last.Locks, view.Locks)
		f.last = view
	}
	f.last.State = view.State
	return events
}

// keepHolders returns the locks of after. A contender that held before and is unknown now holds until its znode is gone.
func keepHolders(before, after []inspect.Lock) []inspect.Lock {
	kept := after
	for _, c := range changes(before, after) {
		if !slices.ContainsFunc(c.is.Contenders, isUnknown) {
			continue
		}
		was, l := contenders{}, *c.is
		was.add(c.was)
		l.Contenders = slices.Clone(l.Contenders)
		for i, is := range l.Contenders {
			if w := was[is.Znode]; isUnknown(is) && w.Znode == is.Znode && w.State == inspect.Holds { // w may be of a turn
				l.Contenders[i].State = inspect.Holds
			}
		}
		if &kept[0] == &after[0] {
			kept = slices.Clone(after)
		}
		at, _ := slices.BinarySearchFunc(kept, l.Path, func(l inspect.Lock, path string) int { return strings.Compare(l.Path, path) })
		kept[at] = l
	}
	return kept
}

func isUnknown(c inspect.Contender) bool { return c.State == inspect.Unknown }

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
		after: after, was: contenders{}, is: contenders{},
		first: before.State != inspect.Current && before.State != inspect.Stale,
		blind: before.State == inspect.Stale,
	}
	if before.State != inspect.Current {
		d.events = append(d.events, Event{What: Live, At: after.At, Path: root})
	}
	changed := changes(before.Locks, after.Locks)
	for _, c := range changed {
		d.was.add(c.was)
		d.is.add(c.is)
	}
	for _, c := range changed {
		d.left(c.was)
		d.came(c.is)
	}
	return d.events
}

// A pair is a lock in two snapshots. If it is in one of them only, the other one has no contender.
type pair struct{ was, is *inspect.Lock }

// changes returns the locks that may differ. Both lists are in the order of their paths. Snapshots never change, and
// those that follow a directory share the contenders of a lock that stays the same.
func changes(before, after []inspect.Lock) []pair {
	var all []pair
	none := new(inspect.Lock)
	for len(before)+len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Path < after[0].Path:
			all, before = append(all, pair{&before[0], none}), before[1:]
		case len(before) == 0 || after[0].Path < before[0].Path:
			all, after = append(all, pair{none, &after[0]}), after[1:]
		default:
			a, b := before[0].Contenders, after[0].Contenders
			if len(a) != len(b) || len(a) > 0 && &a[0] != &b[0] {
				all = append(all, pair{&before[0], &after[0]})
			}
			before, after = before[1:], after[1:]
		}
	}
	return all
}

// contenders are those of a snapshot, by Znode and by Turn.
type contenders map[string]inspect.Contender

func (all contenders) add(l *inspect.Lock) {
	for _, c := range l.Contenders {
		all[c.Znode] = c
		if c.Turn != "" {
			all[c.Turn] = c
		}
	}
}

// find returns the contender that is the same as c. A semaphore's contender has its znode
// in the queue first, and that of its permit later. An unfair mutex's znodes have one name.
func (all contenders) find(c inspect.Contender) (inspect.Contender, bool) {
	found, ok := all[c.Znode]
	if !ok && c.Turn != "" {
		found, ok = all[c.Turn]
	}
	same := found.Znode != c.Znode || found.Czxid == c.Czxid || found.Czxid == 0 || c.Czxid == 0
	return found, ok && same
}

// A difference collects events.
type difference struct {
	after  inspect.View
	was    contenders // of the locks that have changed, as all below
	is     contenders
	first  bool // there was no view before
	blind  bool // the view before was stale
	events []Event
}

func (d *difference) add(what What, l *inspect.Lock, c inspect.Contender) *Event {
	d.events = append(d.events, Event{
		What: what, At: d.after.At, Path: l.Path, Kind: l.Kind, Contender: c, Before: d.first, Unsure: d.blind,
	})
	return &d.events[len(d.events)-1]
}

// left adds the events of the lock's contenders that are not in the later view.
func (d *difference) left(l *inspect.Lock) {
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
		if _, there := d.is[znode]; !there {
			left++
		}
	}
	return left == len(c.WaitsFor) || c.AnyOf && left > 0
}

// came adds the events of the lock's contenders that are new, or have another state.
func (d *difference) came(l *inspect.Lock) {
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
