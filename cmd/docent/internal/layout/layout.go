// Package layout places a wait-for graph on a plane. A blocker is above its waiters, and
// the contenders of a deadlock form a ring.
//
// The drawing depends on its input alone: the same graph gives the same drawing each time.
package layout

import "slices"

// The sizes of a drawing, in units of an SVG's view box.
const (
	NodeWidth  = 148
	NodeHeight = 46
	gapX       = 26 // between neighbours of a row
	gapY       = 66 // between a row and the next
	ringGap    = 96
	margin     = 16
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
	for _, e := range edges {
		d.blockers[e.From] = append(d.blockers[e.From], e.To)
	}
	d.findBlocks()
	d.setLayers()
	w, h := d.pack(width)
	return Drawing{Width: w, Height: h, Nodes: d.at, Parts: d.part, Routes: d.routes(w, h)}
}

// A drawing is a graph that is being placed.
type drawing struct {
	edges    []Edge
	at       []Point
	part     []int    // by node
	block    []*block // by node
	blocks   []*block // blockers first
	blockers [][]int  // by node
}

// A block is placed as one: a node, or the nodes of a cycle.
type block struct {
	nodes         []int
	offsets       []Point // of nodes, from the block's corner
	width, height int
	layer         int // 0 is the top
	part          int // the connected part of the graph
	x             int
}

// setLayers puts each block below all that it waits for, and joins connected blocks.
func (d *drawing) setLayers() {
	parts := make([]int, len(d.blocks)) // union-find over blocks
	index := map[*block]int{}
	for i, b := range d.blocks {
		parts[i], index[b] = i, i
	}
	root := func(i int) int {
		for parts[i] != i {
			i = parts[i]
		}
		return i
	}
	for i, b := range d.blocks { // blockers come first, so their layers are known
		for _, node := range b.nodes {
			for _, blocker := range d.blockers[node] {
				if other := d.block[blocker]; other != b {
					b.layer = max(b.layer, other.layer+1)
					one, two := root(i), root(index[other])
					parts[max(one, two)] = min(one, two)
				}
			}
		}
	}
	for i, b := range d.blocks {
		b.part = root(i)
	}
}
