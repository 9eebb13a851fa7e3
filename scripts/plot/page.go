package main

import (
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The measures of a page.
const (
	columnWidth = 10 * vg.Centimeter
	margin      = 8 * vg.Centimeter // of a page with one column it makes the panels wider
	rowHeight   = 5 * vg.Centimeter
	keyHeight   = 6 * vg.Millimeter // of a line of the key
	sampleWidth = 2 * vg.Centimeter // of a name's line, and the space around both
	gap         = 4 * vg.Millimeter
)

func styleOf(i int) draw.LineStyle {
	return draw.LineStyle{Color: plotutil.Color(i), Width: vg.Points(1), Dashes: plotutil.Dashes(i)}
}

// align gives the panels of a row the same vertical axis. A logarithmic one begins and ends at a power
// of ten, so that it has labels.
func (d drawing) align(row []*plot.Plot) {
	least, most := row[0].Y.Min, row[0].Y.Max
	for _, p := range row {
		least, most = min(least, p.Y.Min), max(most, p.Y.Max)
	}
	if d.log {
		least, most = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most)))
		if least == most {
			most *= 10
		}
	}
	for _, p := range row {
		p.Y.Min, p.Y.Max = least, most
	}
}

// write draws the panels below the names, with their axes aligned, on white: a dark page shows them
// as well.
func write(w io.Writer, panels [][]*plot.Plot, names []string) error {
	columns := len(panels[0])
	width := margin + vg.Length(columns)*columnWidth
	keyWidth := widest(names) + sampleWidth
	perLine := max(1, int(width/keyWidth))
	key := vg.Length((len(names)+perLine-1)/perLine) * keyHeight
	canvas := vgsvg.New(width, key+vg.Length(len(panels))*rowHeight)
	canvas.SetColor(color.White)
	canvas.Fill(draw.New(canvas).Rectangle.Path())
	for i, name := range names {
		writeName(draw.New(canvas), name, i, vg.Length(i%perLine)*keyWidth, vg.Length(i/perLine)*keyHeight)
	}
	tiles := draw.Tiles{
		Rows: len(panels), Cols: columns, PadX: gap, PadY: gap,
		PadTop: gap/2 + key, PadBottom: gap / 2, PadLeft: gap / 2, PadRight: gap,
	}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		for j, tile := range row {
			panels[i][j].Draw(tile)
		}
	}
	_, err := canvas.WriteTo(w)
	return err
}

// widest returns the width of the longest name.
func widest(names []string) (width vg.Length) {
	key := plot.NewLegend()
	for _, name := range names {
		width = max(width, key.TextStyle.Width(name))
	}
	return width
}

// writeName writes a name and its line, so far from the left and from the top.
func writeName(canvas draw.Canvas, name string, i int, left, below vg.Length) {
	key := plot.NewLegend()
	key.Top, key.Left = true, true
	key.XOffs, key.YOffs = gap+left, -gap/2-below
	key.Add(name, &plotter.Line{LineStyle: styleOf(i)})
	key.Draw(canvas)
}
