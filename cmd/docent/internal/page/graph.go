package page

import (
	"path"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/layout"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/cmd/docent/internal/waits"
)

// A graph is a drawing of waiters and their blockers.
type graph struct {
	Nodes []node `json:"nodes"`
	Edges []edge `json:"edges"`
	More  int    `json:"more,omitempty"` // waiters that are left out
}

// A node is a party of the graph.
type node struct {
	X       int    `json:"x"`
	Y       int    `json:"y"`
	Part    int    `json:"part"` // the connected part of the graph: the page puts the parts side by side
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"`
	Dead    bool   `json:"dead,omitempty"`     // in a deadlock
	Maybe   bool   `json:"possible,omitempty"` // in what may be one
	Waiting int64  `json:"waiting,omitempty"`  // ms; since when it waits
	Crowd   int    `json:"crowd,omitempty"`    // it represents so many contenders
	By      string `json:"by,omitempty"`       // the library, if it shows sessions alone
	Session string `json:"session,omitempty"`  // of a party that shows nothing else
}

// An edge leads from a waiter to its blocker.
type edge struct {
	From   int             `json:"from"`
	To     int             `json:"to"`
	Lock   string          `json:"lock"`
	Curve  [4]layout.Point `json:"curve"`
	Text   layout.Point    `json:"text"`
	Label  string          `json:"label,omitempty"` // "" if it has no place, or another edge has it
	Dead   bool            `json:"dead,omitempty"`
	Maybe  bool            `json:"possible,omitempty"`
	Direct bool            `json:"direct,omitempty"` // the blocker holds; else it is in front
}

// oneRow is a width for all parts side by side: the page, which knows its own width, moves them.
const oneRow = 1 << 20

// graphOf draws the waits: see package waits. A party that waits for itself has no edge.
func graphOf(snapshot inspect.Snapshot, deadlocks []inspect.Finding) graph {
	chosen := waits.Of(snapshot, deadlocks)
	g := graph{Nodes: []node{}, Edges: []edge{}, More: chosen.Left}
	for _, p := range chosen.Parties {
		g.Nodes = append(g.Nodes, nodeOf(p))
	}
	for _, e := range chosen.Edges {
		if e.From != e.To {
			g.Edges = append(g.Edges, edge{From: e.From, To: e.To, Lock: e.Lock, Dead: e.Dead, Maybe: e.Possible, Direct: e.Direct})
		}
	}
	g.place()
	return g
}

// place gives nodes and edges their places.
func (g *graph) place() {
	type wait struct {
		from int
		lock string
	}
	edges, named := make([]layout.Edge, len(g.Edges)), make(map[wait]bool)
	for i, e := range g.Edges {
		edges[i] = layout.Edge{From: e.From, To: e.To}
		if own := (wait{e.From, e.Lock}); !named[own] { // the edges of a waiter at one lock are close together
			named[own], edges[i].Label = true, cut(path.Base(e.Lock))
		}
	}
	d := layout.Draw(len(g.Nodes), edges, oneRow)
	for i, at := range d.Nodes {
		g.Nodes[i].X, g.Nodes[i].Y, g.Nodes[i].Part = at.X, at.Y, d.Parts[i]
	}
	for i, r := range d.Routes {
		if g.Edges[i].Curve, g.Edges[i].Text = r.Curve, r.Text; !r.Hidden {
			g.Edges[i].Label = r.Label
		}
	}
}

// nodeOf returns the node of a party. Its name is the process, and the owner has a line of its own.
func nodeOf(p waits.Party) node {
	n := node{Owner: cut(p.Owner), Dead: p.Dead, Maybe: p.Possible, Waiting: millis(p.Since)}
	n.Crowd = p.Crowd
	if p.Strength == inspect.BySession && p.Crowd == 0 {
		n.By, n.Session = string(p.Library), show.Session(p.Session)
	}
	p.Owner = ""
	n.Name = cut(p.String())
	return n
}
