package inspect

import (
	"cmp"
	"slices"
	"sort"

	"github.com/docent-go/docent/cmd/docent/internal/scc"
)

// isBySession reports whether the session alone says whose contender it is.
func isBySession(c Contender) bool { return PartyOf(c).Strength == BySession }

// sessionsOfThreads returns the sessions that have several threads: they contended for something after one
// of their waits had begun, and a thread that waits does nothing else.
func sessionsOfThreads(s Snapshot) map[int64]bool {
	waits := make(map[int64]int64) // by session: the transaction of the first wait
	for _, l := range s.Locks {
		for _, c := range l.Contenders {
			if first, known := waits[c.Session]; c.waits() && c.Session != 0 && (!known || c.Czxid < first) {
				waits[c.Session] = c.Czxid
			}
		}
	}
	several := make(map[int64]bool)
	for _, l := range s.Locks {
		for _, c := range l.Contenders {
			if first, known := waits[c.Session]; known && c.Czxid > first {
				several[c.Session] = true
			}
		}
	}
	return several
}

// cycles returns the parts of a knot's edges that can be cycles of threads. A party that is known by its
// session alone may have several threads. Then a thread has acquired what it holds before it waits, and
// has one wait. If each party is known by more, all edges are one part.
func cycles(edges []Edge) [][]Edge {
	if !slices.ContainsFunc(edges, func(e Edge) bool { return isBySession(e.Waiter) || isBySession(e.Blocker) }) {
		return [][]Edge{edges}
	}
	for {
		parts := returning(edges)
		whole := withoutFreed(edges, slices.Concat(parts...))
		if len(whole) == len(edges) {
			return parts
		}
		edges = whole
	}
}

// withoutFreed returns the edges without those of contenders that wait for one of several others, and
// some of those others are not stuck.
func withoutFreed(edges, stuck []Edge) []Edge {
	missing := make(map[string]int) // by the waiter's znode
	for _, e := range edges {
		missing[e.Waiter.Znode]++
	}
	for _, e := range stuck {
		missing[e.Waiter.Znode]--
	}
	return slices.DeleteFunc(slices.Clone(edges), func(e Edge) bool { return e.Waiter.AnyOf && missing[e.Waiter.Znode] > 0 })
}

// returning returns the parts of the edges from which an edge leads back to itself.
func returning(edges []Edge) [][]Edge {
	waits, ofZnode := make(map[string][]int), make(map[string][]int) // edges, by the waiter's party and znode
	var parties []string
	for i, e := range edges {
		id := PartyOf(e.Waiter).ID
		if waits[id] == nil {
			parties = append(parties, id)
		}
		waits[id] = append(waits[id], i)
		ofZnode[e.Waiter.Znode] = append(ofZnode[e.Waiter.Znode], i)
	}
	// After the edges, the graph has a vertex for each wait of a party. It leads to that wait and to the
	// vertex of the party's next one. So a hold needs one arc to all waits that began after it.
	next, begin := make([][]int, len(edges)), make(map[string]int)
	for _, id := range parties {
		own := waits[id]
		slices.SortStableFunc(own, func(a, b int) int { return cmp.Compare(edges[a].Waiter.Czxid, edges[b].Waiter.Czxid) })
		begin[id] = len(next)
		for k, i := range own {
			vertex := []int{i}
			if k+1 < len(own) {
				vertex = append(vertex, len(next)+1)
			}
			next = append(next, vertex)
		}
	}
	for i, e := range edges {
		id := PartyOf(e.Blocker).ID
		own, from := waits[id], 0
		if isBySession(e.Blocker) {
			if e.Blocker.State == Waits {
				next[i] = ofZnode[e.Blocker.Znode]
				continue
			}
			from = sort.Search(len(own), func(k int) bool { return edges[own[k]].Waiter.Czxid > e.Blocker.Czxid })
		}
		if from < len(own) {
			next[i] = []int{begin[id] + from}
		}
	}
	return partsOf(edges, scc.Components(next))
}

// partsOf returns the edges of the components that have cycles, in order.
func partsOf(edges []Edge, components [][]int) [][]Edge {
	var parts [][]Edge
	for _, vertices := range components {
		if len(vertices) == 1 {
			continue // no edge leads to itself without a vertex between
		}
		slices.Sort(vertices)
		var part []Edge
		for _, v := range vertices {
			if v < len(edges) {
				part = append(part, edges[v])
			}
		}
		parts = append(parts, part)
	}
	return parts
}
