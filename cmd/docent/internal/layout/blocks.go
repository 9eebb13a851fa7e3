package layout

import "math"

// findBlocks finds the strongly connected parts by Tarjan's algorithm, blockers first.
func (d *drawing) findBlocks() {
	s := &search{drawing: d, number: make([]int, len(d.at)), low: make([]int, len(d.at))}
	for node := range d.at {
		if s.number[node] == 0 {
			s.visit(node)
		}
	}
	for _, b := range d.blocks {
		b.arrange()
	}
}

// A search is the state of Tarjan's algorithm. Number is 0 for a node that is yet to be visited.
type search struct {
	*drawing
	number, low []int
	next        int
	stack       []int
}

func (s *search) visit(node int) {
	s.next++
	s.number[node], s.low[node] = s.next, s.next
	s.stack = append(s.stack, node)
	for _, blocker := range s.blockers[node] {
		switch {
		case s.number[blocker] == 0:
			s.visit(blocker)
			s.low[node] = min(s.low[node], s.low[blocker])
		case s.block[blocker] == nil: // on the stack
			s.low[node] = min(s.low[node], s.number[blocker])
		}
	}
	if s.low[node] != s.number[node] {
		return
	}
	b := &block{}
	for {
		top := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		s.block[top] = b
		b.nodes = append([]int{top}, b.nodes...) // so neighbours of the cycle are neighbours here
		if top == node {
			break
		}
	}
	s.blocks = append(s.blocks, b)
}

// arrange places the nodes within the block: one alone, two side by side, more on an ellipse.
func (b *block) arrange() {
	n := len(b.nodes)
	b.width, b.height = NodeWidth, NodeHeight
	b.offsets = []Point{{}}
	switch {
	case n == 2:
		b.offsets = []Point{{}, {X: NodeWidth + ringGap}}
		b.width = 2*NodeWidth + ringGap
		b.height += 2 * ringBow // the edges bow out
		for i := range b.offsets {
			b.offsets[i].Y += ringBow
		}
	case n > 2:
		b.ellipse(n)
	}
}

func (b *block) ellipse(n int) {
	radiusX := float64(n) * (NodeWidth + gapX) / (1.5 * math.Pi)
	radiusY := float64(n) * (NodeHeight + gapY) / (1.5 * math.Pi)
	b.offsets = nil
	for i := range n {
		sin, cos := math.Sincos(2*math.Pi*float64(i)/float64(n) - math.Pi/2)
		b.offsets = append(b.offsets, Point{
			X: int(math.Round(radiusX + radiusX*cos)),
			Y: int(math.Round(radiusY + radiusY*sin)),
		})
	}
	b.width = int(math.Round(2*radiusX)) + NodeWidth
	b.height = int(math.Round(2*radiusY)) + NodeHeight
}
