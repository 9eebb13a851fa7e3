package inspect

import (
	"maps"
	"slices"
)

// A graph is the waits among parties. It is built for one way to tell parties apart.
type graph struct {
	id      identity
	anyWait bool // a party goes on as soon as one of its waits ends, not all
	locks   []Lock
	permits []int // by lock: see waitedFor

	index   map[string]int // of parties, by their ids
	parties []Party
	of      [][]int   // by lock and contender: the party
	waitsOf [][]place // by party
	locksOf [][]int   // by party

	// set by run
	ended [][]bool // by lock and contender: it does not wait
	free  []bool   // by party: it can go on
	todo  []int    // locks to look at
	noted []bool   // by lock: it is in todo
}

// A place is a contender of a lock, by their indexes.
type place struct{ lock, at int }

// identity returns the id of the contender's party for a graph.
type identity func(Contender) string

// certain keeps contenders apart that share a session alone, and those of a session that may be lost.
func (n newest) certain(c Contender) string {
	if p := PartyOf(c); p.Strength != BySession && !n.isOld(c) {
		return p.ID
	}
	return c.Znode
}

// possible takes the contenders of a session for one party, if nothing says otherwise.
func possible(c Contender) string { return PartyOf(c).ID }

func newGraph(locks []Lock, id identity, anyWait bool) *graph {
	g := &graph{id: id, anyWait: anyWait, locks: locks, index: make(map[string]int)}
	for k, l := range locks {
		g.permits = append(g.permits, l.waitedFor())
		of, ended := make([]int, len(l.Contenders)), make([]bool, len(l.Contenders))
		for i, c := range l.Contenders {
			of[i], ended[i] = g.party(c), !c.waits()
			if c.waits() {
				g.waitsOf[of[i]] = append(g.waitsOf[of[i]], place{k, i})
			}
			if seen := g.locksOf[of[i]]; len(seen) == 0 || seen[len(seen)-1] != k {
				g.locksOf[of[i]] = append(seen, k)
			}
		}
		g.of, g.ended = append(g.of, of), append(g.ended, ended)
	}
	g.free, g.noted = make([]bool, len(g.parties)), make([]bool, len(locks))
	g.run()
	return g
}

// party returns the index of the contender's party.
func (g *graph) party(c Contender) int {
	id := g.id(c)
	i, ok := g.index[id]
	if !ok {
		i = len(g.parties)
		g.index[id] = i
		g.parties = append(g.parties, PartyOf(c))
		g.waitsOf, g.locksOf = append(g.waitsOf, nil), append(g.locksOf, nil)
	}
	return i
}

// run lets all parties end that wait for nothing. They leave all locks, which ends waits of others, and
// so on. The parties that are not free then can't go on.
func (g *graph) run() {
	for p := range g.parties {
		g.letGo(p)
	}
	for k := range g.locks {
		g.note(k)
	}
	for len(g.todo) > 0 {
		k := g.todo[len(g.todo)-1]
		g.todo, g.noted[k] = g.todo[:len(g.todo)-1], false
		g.runLock(k)
	}
}

// letGo frees the party if it can go on. Its locks are to be looked at then.
func (g *graph) letGo(party int) {
	if g.free[party] || !g.goesOn(party) {
		return
	}
	g.free[party] = true
	for _, k := range g.locksOf[party] {
		g.note(k)
	}
}

// note has a lock looked at.
func (g *graph) note(lock int) {
	if !g.noted[lock] {
		g.todo, g.noted[lock] = append(g.todo, lock), true
	}
}

// goesOn reports whether enough of the party's waits have ended.
func (g *graph) goesOn(party int) bool {
	waits := g.waitsOf[party]
	ended := func(p place) bool { return g.ended[p.lock][p.at] }
	if g.anyWait && len(waits) > 0 {
		return slices.ContainsFunc(waits, ended)
	}
	return !slices.ContainsFunc(waits, func(p place) bool { return !ended(p) })
}

// runLock ends the waits of the lock for which all parties ahead have left.
func (g *graph) runLock(k int) {
	ahead := make(map[lane]*present)
	for i := range g.locks[k].Contenders {
		c := &g.locks[k].Contenders[i]
		if p := (place{k, i}); !g.ended[k][i] && g.ends(p, ahead) {
			g.ended[k][i] = true
			g.letGo(g.of[k][i]) // before those behind are looked at
		}
		if g.free[g.of[k][i]] {
			continue
		}
		for _, at := range lanesOf(&g.locks[k], c) {
			if ahead[at] == nil {
				ahead[at] = &present{map[int]bool{}, map[int]bool{}}
			}
			ahead[at].parties[g.of[k][i]] = true
			if c.State != Waits {
				ahead[at].holders[g.of[k][i]] = true
			}
		}
	}
}

// A lane is the contenders of a queue that block writers, or those that block readers.
type lane struct {
	queue  int
	reader bool
}

// present is the parties that are in a lane and can't go on.
type present struct{ parties, holders map[int]bool }

// lanesOf returns where the contender blocks those behind it: see Lock.blocks.
func lanesOf(l *Lock, c *Contender) []lane {
	switch {
	case l.Kind == Semaphore && c.State != Waits:
		return nil
	case c.Side == Shared:
		return []lane{{c.queue, false}}
	}
	return []lane{{c.queue, false}, {c.queue, true}}
}

// ends reports whether the contender's wait ends, if ahead has what is ahead of it.
func (g *graph) ends(p place, ahead map[lane]*present) bool {
	own, c := g.of[p.lock][p.at], &g.locks[p.lock].Contenders[p.at]
	if permits := g.permits[p.lock]; permits > 0 {
		return g.staying(p) < permits
	}
	blocking := ahead[lane{c.queue, c.Side == Shared}]
	if blocking == nil {
		return true
	}
	others := len(blocking.parties)
	if blocking.parties[own] {
		others--
	}
	return others == 0 && (!blocking.holders[own] || g.parties[own].Strength == BySession)
}

// staying returns the number of a semaphore's permits that those ahead of the contender have or will
// have, and never release.
func (g *graph) staying(p place) int {
	l := &g.locks[p.lock]
	n := len(l.Foreign)
	for i := range p.at {
		if l.Contenders[i].Czxid != l.Contenders[p.at].Czxid && g.stays(p, i) {
			n++
		}
	}
	return n
}

// stays reports whether the contender at i can't leave before the one at p. An owner that is in a queue
// twice waits for itself only if it holds already. Nothing distinguishes threads of one session, so they
// are no wait for oneself.
func (g *graph) stays(p place, i int) bool {
	own, party := g.of[p.lock][p.at], g.of[p.lock][i]
	if party != own {
		return !g.free[party]
	}
	return g.locks[p.lock].Contenders[i].State != Waits && g.parties[own].Strength != BySession
}

// blockers returns the contenders ahead of p that can't go on, the nearest first. It ends with one that
// waits for all the rest.
func (g *graph) blockers(p place) []int {
	l := &g.locks[p.lock]
	permits := g.permits[p.lock] > 0
	var found []int
	for i := p.at - 1; i >= 0; i-- {
		if !permits && !l.blocks(i, p.at) || !g.stays(p, i) {
			continue
		}
		found = append(found, i)
		if ahead := &l.Contenders[i]; !permits && ahead.waits() && ahead.Side != Shared {
			break
		}
	}
	return found
}

// next returns the parties that the party waits for and that can't go on.
func (g *graph) next(party int) []int {
	found := make(map[int]bool)
	for _, p := range g.waitsOf[party] {
		for _, i := range g.blockers(p) {
			found[g.of[p.lock][i]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
