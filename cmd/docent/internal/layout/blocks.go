package layout

import (
	"math"
	"slices"

	"github.com/docent-go/docent/cmd/docent/internal/scc"
)

// findBlocks finds the blocks, blockers first.
func (d *drawing) findBlocks() {
	for _, nodes := range scc.Components(d.blockers) {
		slices.Reverse(nodes) // so neighbours of the cycle are neighbours here
		b := &block{nodes: nodes}
		for _, node := range nodes {
			d.block[node] = b
		}
		b.arrange()
		d.blocks = append(d.blocks, b)
	}
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
