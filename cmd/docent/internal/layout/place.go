package layout

import (
	"cmp"
	"slices"
)

// pack places each connected part, and the parts in rows from the left. It returns the size.
func (d *drawing) pack(parts [][]int, limit int) (width, height int) {
	x, y, row := margin, margin, 0
	for i, part := range parts {
		slices.Sort(part)
		w, h := d.placePart(part)
		if x > margin && x+w+margin > limit {
			x, y, row = margin, y+row+gapY/2, 0
		}
		for _, node := range part {
			d.part[node] = i
			d.at[node].X += x
			d.at[node].Y += y
		}
		width, height = max(width, x+w+margin), max(height, y+h+margin)
		x, row = x+w+2*gapX, max(row, h)
	}
	return width, height
}

// placePart places the nodes of a part, their blocks in layers, and returns the part's size.
func (d *drawing) placePart(part []int) (width, height int) {
	var layers [][]*block
	for _, node := range part {
		b := d.block[node]
		for len(layers) <= b.layer {
			layers = append(layers, nil)
		}
		if !slices.Contains(layers[b.layer], b) {
			layers[b.layer] = append(layers[b.layer], b)
		}
	}
	y, left, right := 0, 0, 0
	for _, layer := range layers {
		d.placeLayer(layer)
		tallest := 0
		for _, b := range layer {
			tallest = max(tallest, b.height)
			left, right = min(left, b.x), max(right, b.x+b.width)
		}
		for _, b := range layer {
			for i, node := range b.nodes {
				d.at[node] = Point{X: b.x + b.offsets[i].X, Y: y + (tallest-b.height)/2 + b.offsets[i].Y}
			}
		}
		y += tallest + gapY
	}
	for _, node := range part {
		d.at[node].X -= left
	}
	return right - left, y - gapY
}

// placeLayer puts each block as near below its blockers as the layer's other blocks allow.
func (d *drawing) placeLayer(layer []*block) {
	wish := map[*block]int{} // for its middle
	for _, b := range layer {
		wish[b] = d.belowBlockers(b)
	}
	slices.SortStableFunc(layer, func(a, b *block) int { return cmp.Compare(wish[a], wish[b]) })
	for from := 0; from < len(layer); { // neighbours that would overlap are centred together
		to, width, centre := from+1, layer[from].width, wish[layer[from]]
		for to < len(layer) && wish[layer[to]]-layer[to].width/2 < centre+width/2+gapX {
			to++
			width, centre = span(layer[from:to], wish)
		}
		x := centre - width/2
		if from > 0 {
			before := layer[from-1]
			x = max(x, before.x+before.width+gapX)
		}
		for _, b := range layer[from:to] {
			b.x = x
			x += b.width + gapX
		}
		from = to
	}
}

// span returns the width of the blocks side by side, and the mean of where their middles wish to be.
func span(blocks []*block, wish map[*block]int) (width, centre int) {
	for _, b := range blocks {
		width += b.width + gapX
		centre += wish[b]
	}
	return width - gapX, centre / len(blocks)
}

// belowBlockers returns the mean of the x of the middles of all blockers of b.
func (d *drawing) belowBlockers(b *block) int {
	sum, count := 0, 0
	for _, node := range b.nodes {
		for _, blocker := range d.blockers[node] {
			if d.block[blocker] != b {
				sum += d.at[blocker].X + NodeWidth/2
				count++
			}
		}
	}
	return sum / max(count, 1)
}
