package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// values are what has been measured of a curve in all settings, as a file of comma-separated values
// has them.
type values struct {
	curve   string
	unit    string
	columns []string // the names of quantities
	lines   []line
}

// A line is a contender's values at a size.
type line struct {
	size               int
	contender, setting string
	values             []float64
}

// digits is how many significant digits of a value a file has.
const digits = 4

// valuesOf returns the values of a curve's result.
func valuesOf(r curveResult) values {
	v := values{curve: r.Name, unit: r.Unit}
	for _, q := range quantities() {
		v.columns = append(v.columns, q.name)
	}
	for _, c := range r.Climbs {
		for _, p := range c.Points {
			l := line{size: p.Size, contender: c.Contender, setting: r.Setting}
			for _, q := range quantities() {
				l.values = append(l.values, q.of(p))
			}
			v.lines = append(v.lines, l)
		}
	}
	return v
}

// write writes the values, with the names of the columns in the first line.
func (v values) write(w io.Writer) error {
	lines := [][]string{append([]string{v.unit + "s", "contender", "setting"}, v.columns...)}
	for _, l := range v.lines {
		cells := []string{strconv.Itoa(l.size), l.contender, l.setting}
		for _, value := range l.values {
			cells = append(cells, strconv.FormatFloat(value, 'g', digits, 64))
		}
		lines = append(lines, cells)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// readValues reads what write has written of a curve.
func readValues(curve string, r io.Reader) (values, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil || len(rows) == 0 || len(rows[0]) < 3 {
		return values{}, errors.Join(fmt.Errorf("%s: no values", curve), err)
	}
	v := values{curve: curve, unit: strings.TrimSuffix(rows[0][0], "s"), columns: rows[0][3:]}
	for i, row := range rows[1:] {
		l := line{contender: row[1], setting: row[2]}
		l.size, err = strconv.Atoi(row[0])
		for _, cell := range row[3:] {
			value, e := strconv.ParseFloat(cell, 64)
			l.values, err = append(l.values, value), errors.Join(err, e)
		}
		if err != nil {
			return values{}, fmt.Errorf("%s: line %d: %w", curve, i+2, err)
		}
		v.lines = append(v.lines, l)
	}
	return v, nil
}

// with returns the values and newer ones of the same curve. They take the place of their contender's in
// their setting.
func (v values) with(newer values) (values, error) {
	if !slices.Equal(v.columns, newer.columns) {
		return values{}, fmt.Errorf("%s: the values have the columns %q, the new ones %q", v.curve, v.columns, newer.columns)
	}
	both := v
	both.lines = slices.Concat(v.lines, newer.lines)
	settings, contenders := both.settings(), both.contenders()
	both.lines = slices.Concat(slices.DeleteFunc(slices.Clone(v.lines), newer.replaces), newer.lines)
	slices.SortStableFunc(both.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(slices.Index(settings, a.setting), slices.Index(settings, b.setting)),
			cmp.Compare(slices.Index(contenders, a.contender), slices.Index(contenders, b.contender)))
	})
	return both, nil
}

// replaces reports whether the values have the old line's contender in its setting.
func (v values) replaces(old line) bool {
	return slices.ContainsFunc(v.lines, func(l line) bool { return l.contender == old.contender && l.setting == old.setting })
}

// writeValues writes a file for each curve into the directory.
func writeValues(dir string, all []values) error {
	var errs []error
	for _, v := range all {
		var text strings.Builder
		errs = append(errs, v.write(&text), writeFile(filepath.Join(dir, v.curve+".csv"), []byte(text.String())))
	}
	return errors.Join(errs...)
}

// settings returns the names of the settings, in the order of the lines.
func (v values) settings() []string {
	return v.distinct(func(l line) string { return l.setting })
}

// contenders returns their names, in the order of the lines.
func (v values) contenders() []string {
	return v.distinct(func(l line) string { return l.contender })
}

func (v values) distinct(of func(line) string) []string {
	var names []string
	for _, l := range v.lines {
		if !slices.Contains(names, of(l)) {
			names = append(names, of(l))
		}
	}
	return names
}
