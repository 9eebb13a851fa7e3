// Package layout places a wait-for graph on a plane. A blocker is above its waiters, and
// the contenders of a deadlock form a ring.
//
// The drawing depends on its input alone: the same graph gives the same drawing each time.
package layout

import (
	"math"
	"slices"

	"github.com/docent-go/docent/cmd/docent/internal/scc"
)

// The sizes of a drawing, in units of an SVG's view box.
const (
	NodeWidth  = 148
	NodeHeight = 46
	gapX       = 26 // between neighbours of a row
	gapY       = 66 // between a row and the next
	ringGap    = 96
	margin     = 24
)

// An Edge leads from a waiter to its blocker. Both are indexes of nodes.
type Edge struct {
	From, To int
	Label    string
}

// A Point is a position; y grows downwards.
type Point struct{ X, Y int }

// A Route is the way of an edge: a cubic curve from its waiter to its blocker.
type Route struct {
	Edge
	Curve  [4]Point
	Text   Point // the middle of the label
	Hidden bool  // the label is empty, or has no place
	Ring   bool  // the edge is part of a cycle
}

// A Drawing has the left upper corner of each node, and the route of each edge.
type Drawing struct {
	Width, Height int
	Nodes         []Point
	Parts         []int // by node: the connected part of the graph, from 0 in the order of their first nodes
	Routes        []Route
}

// Draw places n nodes and the edges between them. It aims at a drawing that is no wider than
// width. An edge from a node to itself is left out.
func Draw(n int, edges []Edge, width int) Drawing {
	edges = slices.DeleteFunc(slices.Clone(edges), func(e Edge) bool { return e.From == e.To })
	d := &drawing{edges: edges, at: make([]Point, n), part: make([]int, n), block: make([]*block, n), blockers: make([][]int, n)}
	joined := make([][]int, n)
	for _, e := range edges {
		d.blockers[e.From] = append(d.blockers[e.From], e.To)
		joined[e.From], joined[e.To] = append(joined[e.From], e.To), append(joined[e.To], e.From)
	}
	for _, cycle := range scc.Components(d.blockers) { // blockers come first, so their layers are known
		d.addBlock(cycle)
	}
	w, h := d.pack(scc.Components(joined), width)
	return Drawing{Width: w, Height: h, Nodes: d.at, Parts: d.part, Routes: d.routes(w, h)}
}

// A drawing is a graph that is being placed.
type drawing struct {
	edges    []Edge
	at       []Point
	part     []int    // by node
	block    []*block // by node
	blockers [][]int  // by node
}

// A block is placed as one: a node, or the nodes of a cycle.
type block struct {
	nodes         []int
	offsets       []Point // of nodes, from the block's corner
	width, height int
	layer         int // 0 is the top
	x             int
}

// addBlock makes a block of the nodes, below all that they wait for. Several nodes are on an ellipse, two of them
// side by side.
func (d *drawing) addBlock(nodes []int) {
	slices.Reverse(nodes) // so neighbours of the cycle are neighbours here
	b, n, x, y, first := &block{nodes: nodes}, float64(len(nodes)), 0., 0., -math.Pi/2
	if n > 1 {
		x = max((NodeWidth+ringGap)/2, n*(NodeWidth+gapX)/(1.5*math.Pi))
		y = n * (NodeHeight + gapY) / (1.5 * math.Pi)
	}
	if n == 2 {
		first = math.Pi
	}
	for i, node := range nodes {
		sin, cos := math.Sincos(first + 2*math.Pi*float64(i)/n)
		b.offsets = append(b.offsets, Point{X: int(math.Round(x + x*cos)), Y: int(math.Round(y + y*sin))})
		d.block[node] = b
	}
	b.width, b.height = int(math.Round(2*x))+NodeWidth, int(math.Round(2*y))+NodeHeight
	for _, node := range nodes {
		for _, blocker := range d.blockers[node] {
			if other := d.block[blocker]; other != b {
				b.layer = max(b.layer, other.layer+1)
			}
		}
	}
}
