// Command plot draws comma-separated values as an SVG: the first column is the horizontal axis,
// and each of the columns named gets a panel of its own below the others. The first line has
// the columns' names. With -by a panel has a line for each value of that column. With -across the
// panels of each value of that column are next to each other. With -where only some rows are drawn.
// With -log both axes are logarithmic, and values that are not positive are left out.
//
//	go -C scripts/plot run . -columns goroutines,'heap KiB' -title 'Ten minutes' <../../.cache/soak/soak.csv >soak.svg
//	go -C scripts/plot run . -log -by contender -columns 'time µs' -across setting \
//		-where 'contender=docent|Curator' <../../docs/sizing/measured/waiters.csv >waiters.svg
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
)

// A drawing is what the flags say.
type drawing struct {
	columns, title, by, across string
	where                      wanted
	log                        bool
}

func main() {
	var d drawing
	flag.StringVar(&d.columns, "columns", "", "names of the columns to draw, separated by commas; all if empty")
	flag.StringVar(&d.title, "title", "", "title of the drawing")
	flag.StringVar(&d.by, "by", "", "name of the column whose values get a line each")
	flag.StringVar(&d.across, "across", "", "name of the column whose values get panels next to each other")
	flag.Var(&d.where, "where", "rows to draw: COLUMN=VALUE, or COLUMN=VALUE|VALUE; repeat it for other columns")
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
	rows, err = d.where.of(rows)
	if err != nil {
		return err
	}
	parts, err := d.parts(rows)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(rows[0][1:]), func(name string) bool { return name == d.by || name == d.across })
	if d.columns != "" {
		wanted = strings.Split(d.columns, ",")
	}
	names, err := d.names(rows)
	if err != nil {
		return err
	}
	panels := make([][]*plot.Plot, len(wanted))
	for i, name := range wanted {
		for _, part := range parts {
			p, err := d.panel(part.rows, name, names)
			if err != nil {
				return err
			}
			if i == 0 {
				p.Title.Text = strings.Trim(d.title+": "+part.name, ": ")
			}
			if i == len(wanted)-1 {
				p.X.Label.Text = rows[0][0]
			}
			panels[i] = append(panels[i], p)
		}
		d.align(panels[i])
	}
	return write(w, panels, names)
}

// names returns the values of the column by, in the order of the rows. Without -by there are none.
func (d drawing) names(rows [][]string) ([]string, error) {
	if d.by == "" {
		return nil, nil
	}
	column, err := columnOf(rows, d.by)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, row := range rows[1:] {
		if !slices.Contains(names, row[column]) {
			names = append(names, row[column])
		}
	}
	return names, nil
}

// panel returns the plot of one column. A name has the same color in all panels.
func (d drawing) panel(rows [][]string, column string, all []string) (*plot.Plot, error) {
	names, lines, err := d.lines(rows, column)
	if err != nil {
		return nil, err
	}
	p := plot.New()
	p.Y.Label.Text, p.Y.Min = column, 0
	p.Add(plotter.NewGrid())
	if d.log {
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
		p.Y.Min = smallest(lines)
	}
	for i, points := range lines {
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", column, err)
		}
		line.LineStyle = styleOf(max(0, slices.Index(all, names[i])))
		p.Add(line)
	}
	return p, nil
}

// lines returns the points of one column for each value of the column by, in the order of the rows.
func (d drawing) lines(rows [][]string, name string) (names []string, lines []plotter.XYs, err error) {
	column, err := columnOf(rows, name)
	if err != nil {
		return nil, nil, err
	}
	by := -1
	if d.by != "" {
		if by, err = columnOf(rows, d.by); err != nil {
			return nil, nil, err
		}
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
