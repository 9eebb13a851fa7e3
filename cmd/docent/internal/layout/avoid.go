package layout

import (
	"slices"
	"unicode"
)

const (
	room      = 4   // between a node and an edge or a label
	letter    = 7.1 // width of a letter of a label
	labelHigh = 15
	maxLetter = 20 // letters of a label that are drawn
	steps     = 32 // points of a curve that are compared with the nodes
)

// A box is a rectangle that nothing else may be drawn on.
type box struct{ left, top, right, bottom float64 }

func (b box) has(x, y float64) bool { return x > b.left && x < b.right && y > b.top && y < b.bottom }

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

func (d *drawing) boxes() []box {
	boxes := make([]box, len(d.at))
	for i, at := range d.at {
		boxes[i] = box{float64(at.X - room), float64(at.Y - room), float64(at.X + NodeWidth + room), float64(at.Y + NodeHeight + room)}
	}
	return boxes
}

// at returns a point of the curve; t is from 0 to 1.
func (r *Route) at(t float64) (x, y float64) {
	u := 1 - t
	a, b, c, e := u*u*u, 3*u*u*t, 3*u*t*t, t*t*t
	p := r.Curve
	return a*float64(p[0].X) + b*float64(p[1].X) + c*float64(p[2].X) + e*float64(p[3].X),
		a*float64(p[0].Y) + b*float64(p[1].Y) + c*float64(p[2].Y) + e*float64(p[3].Y)
}

// hits returns how many points of the curve are on nodes that the edge does not join.
func (r *Route) hits(boxes []box) int {
	n := 0
	for step := 1; step < steps; step++ {
		x, y := r.at(float64(step) / steps)
		for i, b := range boxes {
			if i != r.From && i != r.To && b.has(x, y) {
				n++
			}
		}
	}
	return n
}

// avoid bends the route around the nodes in its way, as little as that needs. It stays as it is if no
// bend helps.
func (r *Route) avoid(boxes []box) {
	best, fewest := *r, r.hits(boxes)
	for _, bow := range []int{40, -40, 90, -90, 150, -150, 230, -230, 340, -340, 480, -480} {
		if fewest == 0 {
			break
		}
		bent := *r
		bent.Curve[1].X += bow
		bent.Curve[2].X += bow
		if n := bent.hits(boxes); n < fewest {
			best, fewest = bent, n
		}
	}
	*r = best
}

// letters returns how many letters of the label are drawn. A character that is no letter of any script is
// spelled out.
func letters(label string) int {
	n := 0
	for _, c := range label {
		if n++; !unicode.IsGraphic(c) {
			n += 7
		}
	}
	return min(n, maxLetter)
}

// label places the labels, so that none is on a node or on another label, and on another edge only if
// there is no better place. A label that has no place is hidden.
func (d *drawing) label(routes []Route, boxes []box, width, height int) {
	taken := append([]box(nil), boxes...)
	for i := range routes {
		r := &routes[i]
		if r.Hidden = r.Label == ""; r.Hidden {
			continue
		}
		place, ok := r.place(routes, i, taken, width, height)
		if !ok {
			r.Hidden = true
			continue
		}
		taken = append(taken, place)
		r.Text = Point{X: int((place.left + place.right) / 2), Y: int((place.top + place.bottom) / 2)}
	}
}

// place returns where the label can be. Best is where the route has it, then along its curve.
func (r *Route) place(routes []Route, own int, taken []box, width, height int) (box, bool) {
	half := letter * float64(letters(r.Label)) / 2
	around := func(x, y float64) box { return box{x - half - 2, y - labelHigh/2, x + half + 2, y + labelHigh/2} }
	candidates := []box{around(float64(r.Text.X), float64(r.Text.Y))}
	for _, t := range []float64{.3, .5, .2, .4, .6, .7, .1, .8, .9} {
		x, y := r.at(t)
		candidates = append(candidates, around(x, y), around(x+half+6, y), around(x-half-6, y))
	}
	fallback, found := box{}, false
	for _, b := range candidates {
		if b.left < 0 || b.top < 0 || b.right > float64(width) || b.bottom > float64(height) || meetsAny(b, taken) {
			continue
		}
		if !onOther(b, routes, own) {
			return b, true
		}
		if !found {
			fallback, found = b, true
		}
	}
	return fallback, found
}

func meetsAny(b box, taken []box) bool {
	return slices.ContainsFunc(taken, b.meets)
}

// onOther reports whether another route crosses the box.
func onOther(b box, routes []Route, own int) bool {
	for i := range routes {
		if i == own {
			continue
		}
		for step := range steps + 1 {
			if x, y := routes[i].at(float64(step) / steps); b.has(x, y) {
				return true
			}
		}
	}
	return false
}
