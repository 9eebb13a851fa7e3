package page

import (
	"cmp"
	"slices"

	"github.com/docent-go/docent/cmd/docent/internal/layout"
	"github.com/docent-go/docent/recipes/inspect"
)

// A graph is a drawing of waiters and their blockers.
type graph struct {
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Nodes  []node `json:"nodes"`
	Edges  []edge `json:"edges"`
	More   int    `json:"more,omitempty"` // waiters that are left out
}

// A node is a party of the graph.
type node struct {
	X       int    `json:"x"`
	Y       int    `json:"y"`
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"`
	Dead    bool   `json:"dead,omitempty"`    // in a deadlock
	Waiting int64  `json:"waiting,omitempty"` // ms; since when it waits
}

// An edge leads from a waiter to its blocker.
type edge struct {
	From   int             `json:"from"`
	To     int             `json:"to"`
	Lock   string          `json:"lock"`
	Curve  [4]layout.Point `json:"curve"`
	Text   layout.Point    `json:"text"`
	Dead   bool            `json:"dead,omitempty"`
	Direct bool            `json:"direct,omitempty"` // the blocker holds; else it is in front
}

const (
	maxNodes   = 60
	graphWidth = 640
)

// graphOf draws deadlocks first, then the longest waits, with as many parties as fit.
func graphOf(snapshot inspect.Snapshot, deadlocks []inspect.Finding) graph {
	p := picture{graph: graph{Nodes: []node{}, Edges: []edge{}}, dead: deadEdges(deadlocks), index: map[string]int{}, seen: map[edge]bool{}}
	edges := snapshot.Edges()
	slices.SortStableFunc(edges, func(x, y inspect.Edge) int {
		if one, two := p.dead[endsOf(x)], p.dead[endsOf(y)]; one != two {
			if one {
				return -1
			}
			return 1
		}
		return cmp.Or(x.Waiter.Created.Compare(y.Waiter.Created), cmp.Compare(x.Waiter.Znode, y.Waiter.Znode))
	})
	left := map[string]bool{}
	for _, e := range edges {
		if !p.add(e) {
			left[e.Waiter.Znode] = true
		}
	}
	p.More = len(left)
	p.place()
	return p.graph
}

// ends are the znodes of an edge.
type ends struct{ waiter, blocker string }

func endsOf(e inspect.Edge) ends { return ends{waiter: e.Waiter.Znode, blocker: e.Blocker.Znode} }

func deadEdges(deadlocks []inspect.Finding) map[ends]bool {
	dead := map[ends]bool{}
	for _, f := range deadlocks {
		for _, e := range f.Edges {
			dead[endsOf(e)] = true
		}
	}
	return dead
}

// A picture is a graph that is being drawn.
type picture struct {
	graph
	dead  map[ends]bool
	index map[string]int // of nodes, by the party's id
	seen  map[edge]bool  // without places
}

// add adds an edge and its parties, and reports whether they fit.
func (p *picture) add(e inspect.Edge) bool {
	waiter, blocker := inspect.PartyOf(e.Waiter), inspect.PartyOf(e.Blocker)
	more := 0
	for _, party := range []inspect.Party{waiter, blocker} {
		if _, known := p.index[party.ID]; !known {
			more++
		}
	}
	if len(p.Nodes)+more > maxNodes {
		return false
	}
	drawn := edge{From: p.node(waiter), To: p.node(blocker), Lock: e.Lock, Dead: p.dead[endsOf(e)], Direct: e.Direct}
	from, to := &p.Nodes[drawn.From], &p.Nodes[drawn.To]
	if since := millis(e.Waiter.Created); from.Waiting == 0 || since < from.Waiting {
		from.Waiting = since
	}
	if drawn.Dead {
		from.Dead, to.Dead = true, true
	}
	if drawn.From != drawn.To && !p.seen[drawn] {
		p.seen[drawn] = true
		p.Edges = append(p.Edges, drawn)
	}
	return true
}

// node returns the index of the party's node, which it adds if it is new.
func (p *picture) node(party inspect.Party) int {
	i, known := p.index[party.ID]
	if !known {
		i = len(p.Nodes)
		p.index[party.ID] = i
		p.Nodes = append(p.Nodes, nodeOf(party))
	}
	return i
}

// place gives nodes and edges their places.
func (p *picture) place() {
	edges := make([]layout.Edge, len(p.Edges))
	for i, e := range p.Edges {
		edges[i] = layout.Edge{From: e.From, To: e.To, Label: base(e.Lock)}
	}
	d := layout.Draw(len(p.Nodes), edges, graphWidth)
	p.Width, p.Height = d.Width, d.Height
	for i, at := range d.Nodes {
		p.Nodes[i].X, p.Nodes[i].Y = at.X, at.Y
	}
	for i, r := range d.Routes {
		p.Edges[i].Curve, p.Edges[i].Text = r.Curve, r.Text
	}
}

// nodeOf returns the node of a party. Its name is the process, and the owner has a line of its own.
func nodeOf(party inspect.Party) node {
	owner := party.Owner
	party.Owner = ""
	return node{Name: party.String(), Owner: owner}
}
