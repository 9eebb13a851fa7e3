package query

import (
	"cmp"
	"slices"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/recipes/inspect"
)

// maxDrawn is how many parties a picture has at most.
const maxDrawn = 60

// A waitGraph is the parties that wait for each other, for a picture.
type waitGraph struct {
	nodes []graphNode
	edges []graphEdge
	more  int            // waits that are left out
	index map[string]int // of nodes, by the parties' ids
}

type graphNode struct {
	name string // safe to show
	dead bool   // in a deadlock
}

type graphEdge struct {
	from, to int
	lock     string // safe to show
	dead     bool
	direct   bool // the blocker holds
}

// graphOf returns the waits of the snapshot: those of deadlocks first, then the longest.
func graphOf(s inspect.Snapshot, found []inspect.Finding) *waitGraph {
	dead := make(map[string]bool) // by the waiter's and the blocker's znode
	key := func(e inspect.Edge) string { return e.Waiter.Znode + "\x00" + e.Blocker.Znode }
	for _, f := range found {
		for _, e := range f.Edges {
			dead[key(e)] = true
		}
	}
	rank := func(e inspect.Edge) int {
		if dead[key(e)] {
			return 0
		}
		return 1
	}
	edges := s.Edges()
	slices.SortStableFunc(edges, func(a, b inspect.Edge) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Waiter.Created.Compare(b.Waiter.Created), cmp.Compare(a.Waiter.Znode, b.Waiter.Znode))
	})
	g := &waitGraph{index: make(map[string]int)}
	for _, e := range edges {
		g.add(e, dead[key(e)])
	}
	return g
}

// add adds the wait, or counts it if its parties do not fit.
func (g *waitGraph) add(e inspect.Edge, dead bool) {
	ends := [2]inspect.Party{inspect.PartyOf(e.Waiter), inspect.PartyOf(e.Blocker)}
	var at [2]int
	for i, p := range ends {
		known, ok := g.index[p.ID]
		if !ok && len(g.nodes)+1-i >= maxDrawn {
			g.more++
			return
		}
		if !ok {
			known = len(g.nodes)
			g.index[p.ID] = known
			g.nodes = append(g.nodes, graphNode{name: cli.Safe(p.String())})
		}
		at[i] = known
	}
	if dead {
		g.nodes[at[0]].dead, g.nodes[at[1]].dead = true, true
	}
	drawn := graphEdge{from: at[0], to: at[1], lock: cli.Safe(e.Lock), dead: dead, direct: e.Direct}
	if !slices.Contains(g.edges, drawn) {
		g.edges = append(g.edges, drawn)
	}
}
