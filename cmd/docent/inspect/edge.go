package inspect

import (
	"cmp"
	"slices"
)

// An Edge says that one contender waits for another one of the same lock.
type Edge struct {
	Lock    string // the path of the lock
	Waiter  Contender
	Blocker Contender
	Direct  bool // the blocker holds the lock; otherwise it is ahead in the queue
}

// Edges returns the edges of the snapshot: for each waiter those to the contenders in WaitsFor.
func (s Snapshot) Edges() []Edge {
	var all []Edge
	for _, l := range s.Locks {
		places := l.places()
		for _, c := range l.Contenders {
			for _, znode := range c.WaitsFor {
				all = append(all, l.edge(c, l.at(places, znode)))
			}
		}
	}
	return all
}

func (l Lock) edge(waiter, blocker Contender) Edge {
	return Edge{l.Path, waiter, blocker, blocker.State == Holds}
}

// places returns the index of each contender by its znode.
func (l Lock) places() map[string]int {
	places := make(map[string]int, len(l.Contenders))
	for i, c := range l.Contenders {
		places[c.Znode] = i
	}
	return places
}

// at returns the contender of the znode. A znode that is no contender's takes a permit and stays.
func (l Lock) at(places map[string]int, znode string) Contender {
	if i, ok := places[znode]; ok {
		return l.Contenders[i]
	}
	return Contender{Znode: znode, State: Holds, By: OtherLibrary}
}

// blocks reports whether the contender at ahead has to leave before the one at own, which is behind
// it and waits. It does not say so for a contender that waits for one of several others.
func (l *Lock) blocks(ahead, own int) bool {
	a, c := &l.Contenders[ahead], &l.Contenders[own]
	switch {
	case a.queue != c.queue:
		return false // of another format
	case l.Kind == Semaphore:
		return a.State == Waits // the first of the queue waits for the holders
	}
	return a.Side != Shared || c.Side != Shared
}

// waitedFor returns the number of a semaphore's permits, if its first waiter shows it: the permits that
// are held while it waits for one, or what Permits says. It returns 0 if the number is unknown, and
// for other locks.
func (l *Lock) waitedFor() int {
	for i := range l.Contenders {
		if c := &l.Contenders[i]; c.AnyOf && c.waits() {
			return cmp.Or(l.Permits, len(c.WaitsFor))
		}
	}
	return 0
}

// waits reports whether the contender waits for others that are known.
func (c *Contender) waits() bool { return c.State == Waits && len(c.WaitsFor) > 0 }

// confirmed returns the locks of second with the contenders that are in both snapshots. A contender's
// znode never comes again under its name and transaction, so it existed all the time between the two.
// A contender waits if it does in both. One that waits for one of several others waits for the same
// ones in both: otherwise one has left meanwhile, and nothing is known.
func confirmed(first, second Snapshot) []Lock {
	before := make(map[string]Lock, len(first.Locks))
	for _, l := range first.Locks {
		before[l.Path] = l
	}
	var locks []Lock
	for _, l := range second.Locks {
		old := before[l.Path]
		places := old.places()
		both := l
		both.Contenders = nil
		for _, c := range l.Contenders {
			i, ok := places[c.Znode]
			if !ok || !sameZnode(old.Contenders[i], c) {
				continue
			}
			if earlier := old.Contenders[i]; !earlier.waits() || c.AnyOf && !sameNames(earlier.WaitsFor, c.WaitsFor) {
				c.WaitsFor = nil
			}
			both.Contenders = append(both.Contenders, c)
		}
		locks = append(locks, both)
	}
	return locks
}

// sameZnode reports whether the two contenders at one path are one znode. One that was not read has
// no transaction; its name has a number that the directory gives once.
func sameZnode(a, b Contender) bool { return a.Czxid == b.Czxid || !a.Read() || !b.Read() }

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
