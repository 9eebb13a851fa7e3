// Command plot draws comma-separated values as an SVG: the first column is the horizontal axis,
// and each of the columns named gets a panel of its own below the others. The first line has
// the columns' names.
//
//	go -C scripts/plot run . -columns goroutines,'heap KiB' -title 'Ten minutes' <../../.cache/soak/soak.csv >soak.svg
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
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

func main() {
	columns := flag.String("columns", "", "names of the columns to draw, separated by commas; all if empty")
	title := flag.String("title", "", "title of the drawing")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *columns, *title); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(r io.Reader, w io.Writer, columns, title string) error {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return err
	}
	if len(rows) < 2 {
		return fmt.Errorf("%d lines: want the names of the columns and at least one line of values", len(rows))
	}
	wanted := rows[0][1:]
	if columns != "" {
		wanted = strings.Split(columns, ",")
	}
	panels := make([][]*plot.Plot, len(wanted))
	for i, name := range wanted {
		p, err := panel(rows, name)
		if err != nil {
			return err
		}
		if i == 0 {
			p.Title.Text = title
		}
		if i == len(wanted)-1 {
			p.X.Label.Text = rows[0][0]
		}
		panels[i] = []*plot.Plot{p}
	}
	return write(w, panels)
}

// panel returns the plot of one column.
func panel(rows [][]string, name string) (*plot.Plot, error) {
	column := slices.Index(rows[0], name)
	if column < 0 {
		return nil, fmt.Errorf("no column %q: there are %q", name, rows[0])
	}
	points := make(plotter.XYs, len(rows)-1)
	for i, row := range rows[1:] {
		var err error
		if points[i].X, err = strconv.ParseFloat(row[0], 64); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		if points[i].Y, err = strconv.ParseFloat(row[column], 64); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	p := plot.New()
	p.Y.Label.Text, p.Y.Min = name, 0
	p.Add(plotter.NewGrid(), line)
	return p, nil
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
