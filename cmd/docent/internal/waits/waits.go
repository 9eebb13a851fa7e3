// Package waits chooses what a picture of the wait-for graph shows.
package waits

import (
	"cmp"
	"slices"
	"time"

	"github.com/docent-go/docent/recipes/inspect"
)

// Most is how many parties a picture has at most.
const Most = 60

// A Graph is parties and the waits among them.
type Graph struct {
	Parties []Party
	Edges   []Edge
	Left    int // waiters that are left out, because their parties do not fit
}

// A Party is a node of the graph.
type Party struct {
	inspect.Party

	Dead     bool      // it is part of a deadlock
	Possible bool      // it is part of what may be a deadlock, and of none
	Since    time.Time // of its longest wait; zero if it waits for nothing
}

// An Edge leads from a waiter to its blocker. Both are indexes of Parties, and equal for an owner that
// waits for itself.
type Edge struct {
	From, To int
	Lock     string
	Dead     bool // it is part of a deadlock
	Possible bool // it is part of what may be a deadlock, and of none
	Direct   bool // the blocker holds; otherwise it is ahead in the queue
}

// Of returns the waits of the snapshot: those of the findings first, then the longest, with as many
// parties as fit.
func Of(s inspect.Snapshot, found []inspect.Finding) Graph {
	c := chosen{severity: make(map[ends]inspect.Severity), index: make(map[string]int), seen: make(map[Edge]bool)}
	for _, f := range found {
		for _, e := range f.Edges {
			if c.severity[endsOf(e)] != inspect.Error {
				c.severity[endsOf(e)] = f.Severity
			}
		}
	}
	edges := s.Edges()
	slices.SortStableFunc(edges, func(a, b inspect.Edge) int {
		return cmp.Or(cmp.Compare(c.rank(a), c.rank(b)), a.Waiter.Created.Compare(b.Waiter.Created), cmp.Compare(a.Waiter.Znode, b.Waiter.Znode))
	})
	left := make(map[string]bool) // znodes of waiters
	for _, e := range edges {
		if !c.add(e) {
			left[e.Waiter.Znode] = true
		}
	}
	c.Left = len(left)
	return c.Graph
}

// ends are the znodes of an edge.
type ends struct{ waiter, blocker string }

func endsOf(e inspect.Edge) ends { return ends{e.Waiter.Znode, e.Blocker.Znode} }

// chosen is a graph that grows.
type chosen struct {
	Graph

	severity map[ends]inspect.Severity // of the finding
	index    map[string]int            // of parties, by their ids
	seen     map[Edge]bool
}

func (c *chosen) rank(e inspect.Edge) int {
	switch c.severity[endsOf(e)] {
	case inspect.Error:
		return 0
	case "":
		return 2
	}
	return 1
}

// add adds the edge and its parties, and reports whether they fit.
func (c *chosen) add(e inspect.Edge) bool {
	waiter, blocker := inspect.PartyOf(e.Waiter), inspect.PartyOf(e.Blocker)
	unknown := make(map[string]bool)
	for _, p := range []inspect.Party{waiter, blocker} {
		if _, known := c.index[p.ID]; !known {
			unknown[p.ID] = true
		}
	}
	if len(c.Parties)+len(unknown) > Most {
		return false
	}
	drawn := Edge{From: c.party(waiter), To: c.party(blocker), Lock: e.Lock, Direct: e.Direct}
	drawn.Dead, drawn.Possible = c.rank(e) == 0, c.rank(e) == 1
	from, to := &c.Parties[drawn.From], &c.Parties[drawn.To]
	if since := e.Waiter.Created; e.Waiter.Read() && (from.Since.IsZero() || since.Before(from.Since)) {
		from.Since = since
	}
	if drawn.Dead {
		from.Dead, to.Dead, from.Possible, to.Possible = true, true, false, false
	}
	if drawn.Possible {
		from.Possible, to.Possible = !from.Dead, !to.Dead
	}
	if !c.seen[drawn] {
		c.seen[drawn] = true
		c.Edges = append(c.Edges, drawn)
	}
	return true
}

// party returns the index of the party, which it adds if it is new.
func (c *chosen) party(p inspect.Party) int {
	i, known := c.index[p.ID]
	if !known {
		i = len(c.Parties)
		c.index[p.ID] = i
		c.Parties = append(c.Parties, Party{Party: p})
	}
	return i
}
