package layout

import (
	"cmp"
	"math"
	"slices"
)

const (
	ringBow   = 34 // how far an edge of a cycle leaves the straight line, if another one leads back
	labelRise = 16 // of a label above the waiter that the edge leaves
)

// routes returns the way of each edge, in a drawing of a size.
func (d *drawing) routes(width, height int) []Route {
	boxes := d.boxes()
	leave := d.ports(func(e Edge) (int, int) { return e.From, e.To })
	arrive := d.ports(func(e Edge) (int, int) { return e.To, e.From })
	routes := make([]Route, len(d.edges))
	for i, e := range d.edges {
		if d.block[e.From] == d.block[e.To] {
			routes[i] = d.chord(e)
			continue
		}
		routes[i] = d.rise(e, leave[i], arrive[i])
		routes[i].avoid(boxes)
	}
	d.label(routes, boxes, width, height)
	return routes
}

// ports spreads the edges of a node over its side. It returns an x for each edge.
func (d *drawing) ports(ends func(Edge) (node, other int)) []int {
	byNode := map[int][]int{}
	for i, e := range d.edges {
		node, _ := ends(e)
		if d.block[e.From] != d.block[e.To] {
			byNode[node] = append(byNode[node], i)
		}
	}
	x := make([]int, len(d.edges))
	for node, edges := range byNode {
		slices.SortStableFunc(edges, func(a, b int) int {
			_, one := ends(d.edges[a])
			_, two := ends(d.edges[b])
			return cmp.Compare(d.at[one].X, d.at[two].X)
		})
		for i, edge := range edges {
			x[edge] = d.at[node].X + NodeWidth*(i+1)/(len(edges)+1)
		}
	}
	return x
}

// rise leads from the top of a waiter to the bottom of a blocker above it.
func (d *drawing) rise(e Edge, fromX, toX int) Route {
	from := Point{X: fromX, Y: d.at[e.From].Y}
	to := Point{X: toX, Y: d.at[e.To].Y + NodeHeight}
	bend := (from.Y - to.Y) / 2
	return Route{
		Edge: e, Text: Point{X: from.X, Y: from.Y - labelRise},
		Curve: [4]Point{from, {X: from.X, Y: from.Y - bend}, {X: to.X, Y: to.Y + bend}, to},
	}
}

// chord joins two nodes of a cycle from border to border. It bows to its left if another edge leads back.
func (d *drawing) chord(e Edge) Route {
	a, b, bow := d.middle(e.From), d.middle(e.To), 0.
	if slices.Contains(d.blockers[e.To], e.From) {
		bow = ringBow
	}
	from, to := border(a, b), border(b, a)
	dx, dy := float64(to.X-from.X), float64(to.Y-from.Y)
	left := bow / max(math.Hypot(dx, dy), 1)
	at := func(t, left float64) Point {
		return Point{X: from.X + int(math.Round(t*dx+left*dy)), Y: from.Y + int(math.Round(t*dy-left*dx))}
	}
	return Route{Edge: e, Ring: true, Text: at(.5, left), Curve: [4]Point{from, at(1./3, left), at(2./3, left), to}}
}

func (d *drawing) middle(node int) Point {
	return Point{X: d.at[node].X + NodeWidth/2, Y: d.at[node].Y + NodeHeight/2}
}

// border returns where the line from the middle of a node to another point leaves the node.
func border(middle, other Point) Point {
	dx, dy := float64(other.X-middle.X), float64(other.Y-middle.Y)
	t := min(NodeWidth/2/math.Abs(dx), NodeHeight/2/math.Abs(dy))
	return Point{X: middle.X + int(math.Round(t*dx)), Y: middle.Y + int(math.Round(t*dy))}
}
