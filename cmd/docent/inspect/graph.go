package inspect

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"github.com/docent-go/docent/cmd/docent/internal/scc"
)

// A graph is the waits among parties. It is built for one way to tell parties apart.
type graph struct {
	id      identity
	anyWait bool // a party goes on as soon as one of its waits ends, not all
	locks   []Lock
	permits []int // by lock: see waitedFor
	first   []int // by lock: its first member

	members []member // the contenders of all locks
	index   map[string]int
	parties []party
}

// A member is a contender in a graph.
type member struct {
	*Contender
	lock, party int
	exclusive   int  // the nearest member ahead that does not share, less than the lock's first for none
	ended       bool // it does not wait, or its wait ends
}

// A party is a [Party] in a graph, which has its members by their indexes.
type party struct {
	Party
	members int
	locks   []int
	waits   []int // that do not end, the oldest first; none if the party goes on nevertheless
	vertex  int   // the first of waits: see arcs
}

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
	for k := range locks {
		g.permits, g.first = append(g.permits, locks[k].waitedFor()), append(g.first, len(g.members))
		for i := range locks[k].Contenders {
			g.add(k, &locks[k].Contenders[i])
		}
	}
	for i := range g.parties {
		slices.SortStableFunc(g.parties[i].waits, func(a, b int) int { return cmp.Compare(g.members[a].Czxid, g.members[b].Czxid) })
	}
	g.run()
	return g
}

// add adds the next contender of the lock.
func (g *graph) add(lock int, c *Contender) {
	id := g.id(*c)
	i, ok := g.index[id]
	if !ok {
		i = len(g.parties)
		g.index[id] = i
		g.parties = append(g.parties, party{Party: PartyOf(*c)})
	}
	p := &g.parties[i]
	p.members++
	if n := len(p.locks); n == 0 || p.locks[n-1] != lock {
		p.locks = append(p.locks, lock)
	}
	if c.waits() {
		p.waits = append(p.waits, len(g.members))
	}
	exclusive := len(g.members) - 1
	if exclusive >= g.first[lock] && g.members[exclusive].Side == Shared {
		exclusive = g.members[exclusive].exclusive
	}
	g.members = append(g.members, member{c, lock, i, exclusive, !c.waits()})
}

// run lets all waits end that can: those for parties that go on and leave all their locks, which ends waits of others,
// and so on.
func (g *graph) run() {
	todo, noted := make([]int, len(g.locks)), make([]bool, len(g.locks))
	for k := range g.locks {
		todo[k], noted[k] = k, true
	}
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo, noted[k] = todo[:len(todo)-1], false
		for m := g.first[k]; m < g.first[k]+len(g.locks[k].Contenders); m++ {
			if g.members[m].ended || !g.ends(m) {
				continue
			}
			g.members[m].ended = true
			p := &g.parties[g.members[m].party]
			if p.waits = slices.DeleteFunc(p.waits, func(w int) bool { return w == m }); g.anyWait {
				p.waits = nil
			}
			for _, other := range p.locks {
				if !noted[other] && (other != k || p.members > 1) {
					todo, noted[other] = append(todo, other), true
				}
			}
		}
	}
}

// ends reports whether enough of those ahead of the member leave.
func (g *graph) ends(m int) bool {
	lock := g.members[m].lock
	staying, enough := 0, 1
	if permits := g.permits[lock]; permits > 0 {
		enough = permits - len(g.locks[lock].Foreign)
	}
	for range g.blockers(m) {
		if staying++; staying >= enough {
			break
		}
	}
	return staying < enough
}

// blockers returns the members ahead of m that have to leave before it, and don't: the nearest first.
func (g *graph) blockers(m int) iter.Seq[int] {
	own := &g.members[m]
	l, permits := &g.locks[own.lock], g.permits[own.lock] > 0
	next := func(i int) int {
		if own.Side == Shared { // those that share do not block it
			return g.members[i].exclusive
		}
		return i - 1
	}
	return func(yield func(int) bool) {
		for i := next(m); i >= g.first[own.lock]; i = next(i) {
			ahead := &g.members[i]
			if permits && ahead.Czxid == own.Czxid || !permits && !l.blocks(ahead.Contender, own.Contender) {
				continue
			}
			stays := g.stays(i, m)
			if stays && !yield(i) {
				return
			}
			if !stays && !permits && ahead.party != own.party && g.leavesLast(i) {
				return
			}
		}
	}
}

// leavesLast reports whether all ahead of a member that leaves have left before it.
func (g *graph) leavesLast(m int) bool {
	c, p := &g.members[m], &g.parties[g.members[m].party]
	return c.waits() && c.ended && c.Side != Shared && (p.Strength != BySession || p.members == 1)
}

// stays reports whether the member at i can't leave before m. An owner that is in a queue twice waits for itself only
// if it holds already. Nothing distinguishes threads of one session, so they are no wait for oneself. A thread
// has acquired what it holds before it waits, and waits for one lock.
func (g *graph) stays(i, m int) bool {
	c, p := &g.members[i], &g.parties[g.members[i].party]
	switch {
	case c.party == g.members[m].party:
		return c.State != Waits && p.Strength != BySession
	case len(p.waits) == 0:
		return false
	case p.Strength != BySession:
		return true
	case c.State == Waits:
		return !c.ended
	}
	return g.members[p.waits[len(p.waits)-1]].Czxid > c.Czxid
}

// A knot is parties that wait for each other, or one that waits for itself, and those behind them.
type knot struct {
	edges           []Edge
	parties, behind []int
}

// knots returns the parts of the waits that lead back to themselves. A session may have several threads, so if a part has
// parties that are known by their sessions alone, only what a finding shows leads on, and the rest is behind it.
func (g *graph) knots() []knot {
	next := g.arcs()
	wholes := scc.Components(next)
	whole, inner := numbers(wholes), slices.Clone(next)
	shown := func(wait int) []int {
		return g.shown(wait, func(blocker int) bool { return whole[g.leadsTo(blocker)] == whole[wait] })
	}
	for _, vertices := range wholes {
		waits := g.waitsOf(vertices)
		bySession := func(w int) bool { return g.parties[g.members[w].party].Strength == BySession }
		if g.anyWait || !slices.ContainsFunc(waits, bySession) {
			continue
		}
		for _, w := range waits {
			inner[w] = nil
			for _, b := range shown(w) {
				inner[w] = append(inner[w], g.leadsTo(b))
			}
		}
	}
	var found []knot
	parts := scc.Components(inner)
	part := numbers(parts)
	for n, vertices := range parts {
		if len(vertices) == 1 {
			continue // no wait leads to itself without a vertex between
		}
		k := knot{parties: g.partiesOf(vertices)}
		for _, w := range g.waitsOf(vertices) {
			for _, b := range shown(w) {
				if part[g.leadsTo(b)] == n {
					k.edges = append(k.edges, g.locks[g.members[w].lock].edge(*g.members[w].Contender, *g.members[b].Contender))
				}
			}
		}
		k.behind = slices.DeleteFunc(g.partiesOf(reaching(wholes[whole[vertices[0]]:], next)), func(p int) bool { return slices.Contains(k.parties, p) })
		found = append(found, k)
	}
	slices.SortStableFunc(found, func(a, b knot) int { return cmp.Compare(a.parties[0], b.parties[0]) })
	return found
}

// arcs returns a graph of the waits that do not end. After the members it has a vertex for each wait of a party, which
// leads to that wait and to the vertex of the party's next one. So what blocks needs one arc to all waits that keep it.
func (g *graph) arcs() [][]int {
	next := make([][]int, len(g.members))
	for i := range g.parties {
		p := &g.parties[i]
		p.vertex = len(next)
		for k, w := range p.waits {
			next = append(next, []int{w})
			if k+1 < len(p.waits) {
				next[len(next)-1] = []int{w, len(next)}
			}
		}
	}
	for _, p := range g.parties {
		for _, w := range p.waits {
			for b := range g.blockers(w) {
				next[w] = append(next[w], g.leadsTo(b))
				if c := &g.members[b]; c.waits() && c.Side != Shared {
					break // it waits for all the rest
				}
			}
		}
	}
	return next
}

// leadsTo returns the vertex of the waits that keep a blocker: see stays.
func (g *graph) leadsTo(blocker int) int {
	c, p := &g.members[blocker], &g.parties[g.members[blocker].party]
	switch {
	case p.Strength != BySession:
		return p.vertex
	case c.State == Waits:
		return blocker
	}
	return p.vertex + sort.Search(len(p.waits), func(k int) bool { return g.members[p.waits[k]].Czxid > c.Czxid })
}

// waitsOf returns the waits among the vertices, by their parties.
func (g *graph) waitsOf(vertices []int) []int {
	waits := slices.DeleteFunc(slices.Clone(vertices), func(v int) bool { return v >= len(g.members) })
	slices.SortFunc(waits, func(a, b int) int {
		return cmp.Or(cmp.Compare(g.members[a].party, g.members[b].party), cmp.Compare(a, b))
	})
	return waits
}

// partiesOf returns the parties of the waits among the vertices.
func (g *graph) partiesOf(vertices []int) []int {
	var parties []int
	for _, w := range g.waitsOf(vertices) {
		parties = append(parties, g.members[w].party)
	}
	return slices.Compact(parties)
}

// numbers returns the part of each vertex.
func numbers(parts [][]int) []int {
	of := make([]int, len(slices.Concat(parts...)))
	for n, part := range parts {
		for _, v := range part {
			of[v] = n
		}
	}
	return of
}

// reaching returns the vertices of the first part and of those that lead to it. A part comes after those that it leads to.
func reaching(parts, next [][]int) []int {
	var found []int
	in := make(map[int]bool)
	for i, part := range parts {
		leads := func(v int) bool { return slices.ContainsFunc(next[v], func(to int) bool { return in[to] }) }
		if i > 0 && !slices.ContainsFunc(part, leads) {
			continue
		}
		found = append(found, part...)
		for _, v := range part {
			in[v] = true
		}
	}
	return found
}

// shown returns the blockers of a wait that a finding shows of those in its knot: the holders or, if there is none, the
// nearest.
func (g *graph) shown(wait int, in func(blocker int) bool) []int {
	var holders, nearest []int
	for b := range g.blockers(wait) {
		switch {
		case !in(b):
		case g.members[b].State == Holds:
			holders = append(holders, b)
		case nearest == nil:
			nearest = []int{b}
		}
	}
	if holders == nil {
		return nearest
	}
	slices.Reverse(holders)
	return holders
}
