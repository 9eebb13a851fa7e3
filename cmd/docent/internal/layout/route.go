package layout

import (
	"cmp"
	"slices"
)

const (
	ringBow   = 34 // how far an edge between two of a ring leaves the straight line
	labelRise = 16 // of a label above the waiter that the edge leaves
)

// routes returns the way of each edge, in a drawing of a size.
func (d *drawing) routes(width, height int) []Route {
	boxes := d.boxes()
	leave := d.ports(func(e Edge) (int, int) { return e.From, e.To })
	arrive := d.ports(func(e Edge) (int, int) { return e.To, e.From })
	routes := make([]Route, len(d.edges))
	for i, e := range d.edges {
		from, to := d.block[e.From], d.block[e.To]
		switch {
		case from == to && len(from.nodes) == 2:
			routes[i] = d.pair(e)
		case from == to:
			routes[i] = d.chord(e)
		case from.layer-to.layer > 1 && abs(d.at[e.From].X-d.at[e.To].X) < NodeWidth:
			routes[i] = d.around(e)
		default:
			routes[i] = d.rise(e, leave[i], arrive[i])
		}
		if !routes[i].Ring {
			routes[i].avoid(boxes)
		}
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

// around leads past the nodes between a waiter and a blocker straight above it.
func (d *drawing) around(e Edge) Route {
	from := Point{X: d.at[e.From].X + NodeWidth, Y: d.at[e.From].Y + NodeHeight/2}
	to := Point{X: d.at[e.To].X + NodeWidth, Y: d.at[e.To].Y + NodeHeight/2}
	x := max(from.X, to.X) + gapX
	return Route{
		Edge: e, Text: Point{X: x - gapX/4, Y: (from.Y + to.Y) / 2},
		Curve: [4]Point{from, {X: x, Y: from.Y}, {X: x, Y: to.Y}, to},
	}
}

// pair joins two nodes that are side by side: to the right above them, to the left below.
func (d *drawing) pair(e Edge) Route {
	a, b := d.at[e.From], d.at[e.To]
	from := Point{X: a.X + NodeWidth, Y: a.Y + NodeHeight/3}
	to := Point{X: b.X, Y: b.Y + NodeHeight/3}
	bow := -ringBow
	if a.X > b.X {
		from = Point{X: a.X, Y: a.Y + NodeHeight*2/3}
		to = Point{X: b.X + NodeWidth, Y: b.Y + NodeHeight*2/3}
		bow = ringBow
	}
	third := (to.X - from.X) / 3
	return Route{
		Edge: e, Ring: true, Text: Point{X: (from.X + to.X) / 2, Y: from.Y + bow*3/4 + sign(bow)*8},
		Curve: [4]Point{from, {X: from.X + third, Y: from.Y + bow}, {X: to.X - third, Y: to.Y + bow}, to},
	}
}

// chord joins two nodes of a ring of three or more, straight from border to border.
func (d *drawing) chord(e Edge) Route {
	a, b := d.middle(e.From), d.middle(e.To)
	from, to := border(a, b), border(b, a)
	third := Point{X: (to.X - from.X) / 3, Y: (to.Y - from.Y) / 3}
	return Route{
		Edge: e, Ring: true, Text: Point{X: (from.X + to.X) / 2, Y: (from.Y + to.Y) / 2},
		Curve: [4]Point{from, {X: from.X + third.X, Y: from.Y + third.Y}, {X: to.X - third.X, Y: to.Y - third.Y}, to},
	}
}

func (d *drawing) middle(node int) Point {
	return Point{X: d.at[node].X + NodeWidth/2, Y: d.at[node].Y + NodeHeight/2}
}

// border returns where the line from the middle of a node to another point leaves the node.
func border(middle, other Point) Point {
	dx, dy := other.X-middle.X, other.Y-middle.Y
	if dx == 0 && dy == 0 {
		return middle
	}
	if abs(dx)*NodeHeight > abs(dy)*NodeWidth {
		return Point{X: middle.X + sign(dx)*NodeWidth/2, Y: middle.Y + dy*NodeWidth/2/abs(dx)}
	}
	return Point{X: middle.X + dx*NodeHeight/2/abs(dy), Y: middle.Y + sign(dy)*NodeHeight/2}
}

func abs(n int) int { return max(n, -n) }

func sign(n int) int { return cmp.Compare(n, 0) }
