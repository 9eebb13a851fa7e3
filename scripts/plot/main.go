// Command plot draws comma-separated values as an SVG: the first column is the horizontal axis,
// and each of the columns named gets a panel of its own below the others. The first line has
// the columns' names. With -by a panel has a line for each value of that column. With -log both axes
// are logarithmic, and values that are not positive are left out.
//
//	go -C scripts/plot run . -columns goroutines,'heap KiB' -title 'Ten minutes' <../../.cache/soak/soak.csv >soak.svg
//	go -C scripts/plot run . -log -by contender -columns 'time µs' <../../.cache/bench/waiters.csv >waiters.svg
package main

import (
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A drawing is what the flags say.
type drawing struct {
	columns, title, by string
	log                bool
}

func main() {
	var d drawing
	flag.StringVar(&d.columns, "columns", "", "names of the columns to draw, separated by commas; all if empty")
	flag.StringVar(&d.title, "title", "", "title of the drawing")
	flag.StringVar(&d.by, "by", "", "name of the column whose values get a line each")
	flag.BoolVar(&d.log, "log", false, "logarithmic axes")
	flag.Parse()
	if err := d.run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func (d drawing) run(r io.Reader, w io.Writer) error {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return err
	}
	if len(rows) < 2 {
		return fmt.Errorf("%d lines: want the names of the columns and at least one line of values", len(rows))
	}
	wanted := slices.DeleteFunc(slices.Clone(rows[0][1:]), func(name string) bool { return name == d.by })
	if d.columns != "" {
		wanted = strings.Split(d.columns, ",")
	}
	panels := make([][]*plot.Plot, len(wanted))
	for i, name := range wanted {
		p, err := d.panel(rows, name)
		if err != nil {
			return err
		}
		if i == 0 {
			p.Title.Text = d.title
		}
		if i == len(wanted)-1 {
			p.X.Label.Text = rows[0][0]
		}
		panels[i] = []*plot.Plot{p}
	}
	return write(w, panels)
}

// panel returns the plot of one column.
func (d drawing) panel(rows [][]string, name string) (*plot.Plot, error) {
	names, lines, err := d.lines(rows, name)
	if err != nil {
		return nil, err
	}
	p := plot.New()
	p.Y.Label.Text, p.Y.Min = name, 0
	p.Add(plotter.NewGrid())
	if d.log {
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
		p.Y.Min = smallest(lines)
	}
	for i, points := range lines {
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i)
		p.Add(line)
		if d.by != "" {
			p.Legend.Add(names[i], line)
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}

// lines returns the points of one column for each value of the column by, in the order of the rows.
func (d drawing) lines(rows [][]string, name string) (names []string, lines []plotter.XYs, err error) {
	column := slices.Index(rows[0], name)
	if column < 0 {
		return nil, nil, fmt.Errorf("no column %q: there are %q", name, rows[0])
	}
	by := slices.Index(rows[0], d.by)
	if d.by != "" && by < 0 {
		return nil, nil, fmt.Errorf("no column %q: there are %q", d.by, rows[0])
	}
	for i, row := range rows[1:] {
		var point plotter.XY
		if point.X, err = strconv.ParseFloat(row[0], 64); err == nil {
			point.Y, err = strconv.ParseFloat(row[column], 64)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		if d.log && !(point.X > 0 && point.Y > 0) {
			continue
		}
		of := ""
		if by >= 0 {
			of = row[by]
		}
		at := slices.Index(names, of)
		if at < 0 {
			at = len(names)
			names, lines = append(names, of), append(lines, nil)
		}
		lines[at] = append(lines[at], point)
	}
	if len(lines) == 0 {
		return nil, nil, fmt.Errorf("column %q: no value can be drawn", name)
	}
	return names, lines, nil
}

// smallest returns the smallest height.
func smallest(lines []plotter.XYs) float64 {
	least := lines[0][0].Y
	for _, points := range lines {
		for _, point := range points {
			least = min(least, point.Y)
		}
	}
	return least
}

// write draws the panels below one another, with their axes aligned.
func write(w io.Writer, panels [][]*plot.Plot) error {
	canvas := vgsvg.New(18*vg.Centimeter, vg.Length(len(panels))*5*vg.Centimeter)
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadY: 4 * vg.Millimeter, PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter, PadRight: 4 * vg.Millimeter}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		panels[i][0].Draw(row[0])
	}
	_, err := canvas.WriteTo(w)
	return err
}
