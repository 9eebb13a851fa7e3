// Package waits chooses what a picture of the wait-for graph shows.
package waits

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// Most is how many parties a picture has at most.
const Most = 60

// A Mark says how certain it is that something is part of a deadlock. The more certain one is greater.
type Mark int

// The marks. The zero Mark is that of what is part of none.
const (
	Possible Mark = iota + 1
	Dead
)

// MarkOf returns the mark of what is part of the finding.
func MarkOf(f inspect.Finding) Mark {
	if f.Severity == inspect.Error {
		return Dead
	}
	return Possible
}

// MarshalText returns the mark's name.
func (m Mark) MarshalText() ([]byte, error) {
	return []byte([...]string{"", "possible", "dead"}[m]), nil
}

// A Graph is parties and the waits among them.
type Graph struct {
	Parties []Party
	Edges   []Edge
	Left    int // waiters that are left out, because their parties do not fit
}

// A Party is a node of the graph.
type Party struct {
	inspect.Party

	Crowd   int // it represents so many contenders of one lock, which are left out
	Library inspect.Library
	Mark    Mark
	Since   time.Time // of its longest wait; zero if it waits for nothing
}

// An Edge leads from a waiter to its blocker. Both are indexes of Parties, and equal for an owner that
// waits for itself.
type Edge struct {
	From, To int
	Lock     string
	Mark     Mark
	Direct   bool // the blocker holds; otherwise it is ahead in the queue
}

// Of returns the waits of the snapshot: those of the findings first, then the longest, with as many
// parties as fit.
func Of(s inspect.Snapshot, found []inspect.Finding) Graph {
	c := chosen{marks: make(map[ends]Mark), crowds: make(map[string]crowd), shown: make(map[string]bool), index: make(map[string]int), seen: make(map[Edge]bool)}
	for _, f := range found {
		for _, e := range f.Edges {
			c.marks[endsOf(e)] = max(c.marks[endsOf(e)], MarkOf(f))
			c.shown[e.Waiter.Znode], c.shown[e.Blocker.Znode] = true, true
		}
	}
	for _, l := range s.Locks {
		c.fold(l)
	}
	edges := s.Edges()
	slices.SortStableFunc(edges, func(a, b inspect.Edge) int {
		return cmp.Or(cmp.Compare(c.marks[endsOf(b)], c.marks[endsOf(a)]), a.Waiter.Created.Compare(b.Waiter.Created), cmp.Compare(a.Waiter.Znode, b.Waiter.Znode))
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

	marks  map[ends]Mark    // of the findings
	shown  map[string]bool  // znodes of findings
	crowds map[string]crowd // by the znodes that are folded
	index  map[string]int   // of parties, by their ids
	seen   map[Edge]bool
}

// A crowd is the contenders of a lock that a picture shows as one node.
type crowd struct {
	party inspect.Party
	size  int
}

// What a picture shows of a long row of holders or waiters: the first ones and the last ones.
const (
	headOfRow = 3
	tailOfRow = 3
	longRow   = headOfRow + tailOfRow + 2
)

// fold has the middle of the lock's waiters, and of its holders, be one node each.
func (c *chosen) fold(l inspect.Lock) {
	for _, row := range []struct {
		name       string
		contenders []inspect.Contender
	}{{"holders", l.Holders()}, {"waiters", l.Waiters()}} {
		if len(row.contenders) <= longRow {
			continue
		}
		var folded []string
		for _, contender := range row.contenders[headOfRow : len(row.contenders)-tailOfRow] {
			if !c.shown[contender.Znode] {
				folded = append(folded, contender.Znode)
			}
		}
		label := fmt.Sprintf("+%d %s", len(folded), row.name)
		for _, znode := range folded {
			c.crowds[znode] = crowd{inspect.Party{ID: row.name + " " + l.Path, Label: label}, len(folded)}
		}
	}
}

// partyOf returns the party of the contender, and the number of its crowd.
func (c *chosen) partyOf(contender inspect.Contender) (inspect.Party, int) {
	if in, folded := c.crowds[contender.Znode]; folded {
		return in.party, in.size
	}
	return inspect.PartyOf(contender), 0
}

// add adds the edge and its parties, and reports whether they fit.
func (c *chosen) add(e inspect.Edge) bool {
	waiter, behind := c.partyOf(e.Waiter)
	blocker, ahead := c.partyOf(e.Blocker)
	if behind > 0 && waiter.ID == blocker.ID {
		return true // within a crowd
	}
	unknown := make(map[string]bool)
	for _, p := range []inspect.Party{waiter, blocker} {
		if _, known := c.index[p.ID]; !known {
			unknown[p.ID] = true
		}
	}
	if len(c.Parties)+len(unknown) > Most {
		return false
	}
	drawn := Edge{From: c.party(waiter), To: c.party(blocker), Lock: e.Lock, Direct: e.Direct, Mark: c.marks[endsOf(e)]}
	from, to := &c.Parties[drawn.From], &c.Parties[drawn.To]
	from.Crowd, to.Crowd = behind, ahead
	from.Library, to.Library = e.Waiter.By, e.Blocker.By
	if since := e.Waiter.Created; e.Waiter.Read() && (from.Since.IsZero() || since.Before(from.Since)) {
		from.Since = since
	}
	from.Mark, to.Mark = max(from.Mark, drawn.Mark), max(to.Mark, drawn.Mark)
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
