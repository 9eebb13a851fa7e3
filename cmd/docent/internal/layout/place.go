package layout

import (
	"cmp"
	"slices"
)

// pack places each connected part, and the parts in rows from the left. It returns the size.
func (d *drawing) pack(limit int) (width, height int) {
	x, y, row := margin, margin, 0
	for i, part := range d.parts() {
		w, h := d.placePart(part)
		if x > margin && x+w+margin > limit {
			x, y, row = margin, y+row+gapY/2, 0
		}
		for _, b := range part {
			for _, node := range b.nodes {
				d.part[node] = i
				d.at[node].X += x
				d.at[node].Y += y
			}
		}
		width, height = max(width, x+w+margin), max(height, y+h+margin)
		x, row = x+w+2*gapX, max(row, h)
	}
	return width, height
}

// parts returns the blocks of each connected part. The part of the first node comes first.
func (d *drawing) parts() [][]*block {
	var parts [][]*block
	for _, b := range d.block {
		i := slices.IndexFunc(parts, func(part []*block) bool { return part[0].part == b.part })
		if i < 0 {
			parts = append(parts, []*block{b})
		} else if !slices.Contains(parts[i], b) {
			parts[i] = append(parts[i], b)
		}
	}
	return parts
}

// placePart places the blocks of a part in layers, and returns the part's size.
func (d *drawing) placePart(part []*block) (width, height int) {
	last := 0
	for _, b := range part {
		last = max(last, b.layer)
	}
	layers := make([][]*block, last+1)
	for _, b := range part {
		layers[b.layer] = append(layers[b.layer], b)
	}
	y, left, right := 0, 0, 0
	for i, layer := range layers {
		d.placeLayer(layer, i == 0)
		tallest := 0
		for _, b := range layer {
			tallest = max(tallest, b.height)
			left, right = min(left, b.x), max(right, b.x+b.width)
		}
		for _, b := range layer {
			d.setBlock(b, y+(tallest-b.height)/2)
		}
		y += tallest + gapY
	}
	for _, b := range part {
		for _, node := range b.nodes {
			d.at[node].X -= left
		}
	}
	return right - left, y - gapY
}

func (d *drawing) setBlock(b *block, y int) {
	for i, node := range b.nodes {
		d.at[node] = Point{X: b.x + b.offsets[i].X, Y: y + b.offsets[i].Y}
	}
}

// placeLayer puts each block as near below its blockers as the layer's other blocks allow.
func (d *drawing) placeLayer(layer []*block, top bool) {
	wish := map[*block]int{}
	for _, b := range layer {
		if !top {
			wish[b] = d.belowBlockers(b) - b.width/2
		}
	}
	slices.SortStableFunc(layer, func(a, b *block) int { return cmp.Compare(wish[a], wish[b]) })
	for from := 0; from < len(layer); { // neighbours that would overlap are centred together
		to, width := from+1, layer[from].width
		centre := wish[layer[from]] + width/2
		for to < len(layer) && wish[layer[to]] < centre+width/2+gapX {
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

// span returns the width of the blocks side by side, and the mean of where they wish to be.
func span(blocks []*block, wish map[*block]int) (width, centre int) {
	for _, b := range blocks {
		width += b.width + gapX
		centre += wish[b] + b.width/2
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
