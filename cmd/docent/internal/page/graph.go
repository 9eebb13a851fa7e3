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
	X       int        `json:"x"`
	Y       int        `json:"y"`
	Part    int        `json:"part"` // the connected part of the graph: the page puts the parts side by side
	Name    string     `json:"name"`
	Owner   string     `json:"owner,omitempty"`
	Mark    waits.Mark `json:"mark,omitempty"`
	Waiting int64      `json:"waiting,omitempty"` // ms; since when it waits
	Crowd   int        `json:"crowd,omitempty"`   // it represents so many contenders
	By      string     `json:"by,omitempty"`      // the library, if it shows sessions alone
	Session string     `json:"session,omitempty"` // of a party that shows nothing else
}

// An edge leads from a waiter to its blocker.
type edge struct {
	From   int             `json:"from"`
	To     int             `json:"to"`
	Lock   string          `json:"lock"`
	Curve  [4]layout.Point `json:"curve"`
	Text   layout.Point    `json:"text"`
	Label  string          `json:"label,omitempty"` // "" if it has no place, or another edge has it
	Mark   waits.Mark      `json:"mark,omitempty"`
	Direct bool            `json:"direct,omitempty"` // the blocker holds; else it is in front
}

// oneRow is a width for all parts side by side: the page, which knows its own width, moves them.
const oneRow = 1 << 20

// graphOf draws the waits: see package waits. A party that waits for itself has no edge.
func graphOf(snapshot inspect.Snapshot, deadlocks []inspect.Finding) graph {
	chosen := waits.Of(snapshot, deadlocks)
	g := graph{Nodes: []node{}, Edges: []edge{}, More: chosen.Left}
	type wait struct {
		from int
		lock string
	}
	var edges []layout.Edge
	named := make(map[wait]bool)
	for _, e := range chosen.Edges {
		if e.From == e.To {
			continue
		}
		g.Edges = append(g.Edges, edge{From: e.From, To: e.To, Lock: e.Lock, Mark: e.Mark, Direct: e.Direct})
		drawn := layout.Edge{From: e.From, To: e.To}
		if own := (wait{e.From, e.Lock}); !named[own] { // the edges of a waiter at one lock are close together
			named[own], drawn.Label = true, cut(path.Base(e.Lock))
		}
		edges = append(edges, drawn)
	}
	d := layout.Draw(len(chosen.Parties), edges, oneRow)
	for i, p := range chosen.Parties {
		n := nodeOf(p)
		n.X, n.Y, n.Part = d.Nodes[i].X, d.Nodes[i].Y, d.Parts[i]
		g.Nodes = append(g.Nodes, n)
	}
	for i, r := range d.Routes {
		if g.Edges[i].Curve, g.Edges[i].Text = r.Curve, r.Text; !r.Hidden {
			g.Edges[i].Label = r.Label
		}
	}
	return g
}

// nodeOf returns the node of a party. Its name is the process, and the owner has a line of its own.
func nodeOf(p waits.Party) node {
	n := node{Owner: cut(p.Owner), Mark: p.Mark, Waiting: millis(p.Since), Crowd: p.Crowd}
	if p.Strength == inspect.BySession && p.Crowd == 0 {
		n.By, n.Session = string(p.Library), show.Session(p.Session)
	}
	p.Owner = ""
	n.Name = cut(p.String())
	return n
}
