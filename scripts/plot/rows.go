package main

import (
	"fmt"
	"slices"
	"strings"
)

// A wanted is which rows to draw: the values that each of some columns may have.
type wanted map[string][]string

func (w *wanted) String() string { return "" }

// Set adds a column and its values, as -where has them.
func (w *wanted) Set(text string) error {
	column, values, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q: want COLUMN=VALUE", text)
	}
	if *w == nil {
		*w = make(wanted)
	}
	(*w)[column] = strings.Split(values, "|")
	return nil
}

// of returns the names of the columns and the rows that are wanted.
func (w wanted) of(rows [][]string) ([][]string, error) {
	for name, values := range w {
		column, err := columnOf(rows, name)
		if err != nil {
			return nil, err
		}
		head := rows[0]
		rows = slices.DeleteFunc(slices.Clone(rows[1:]), func(row []string) bool { return !slices.Contains(values, row[column]) })
		if len(rows) == 0 {
			return nil, fmt.Errorf("column %q: no row has %q", name, values)
		}
		rows = slices.Insert(rows, 0, head)
	}
	return rows, nil
}

// A part is the rows of one value of the column across.
type part struct {
	name string
	rows [][]string
}

// parts returns the parts, in the order of the rows. Without -across there is one.
func (d drawing) parts(rows [][]string) ([]part, error) {
	if d.across == "" {
		return []part{{"", rows}}, nil
	}
	column, err := columnOf(rows, d.across)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, row := range rows[1:] {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == row[column] })
		if i < 0 {
			i, parts = len(parts), append(parts, part{row[column], [][]string{rows[0]}})
		}
		parts[i].rows = append(parts[i].rows, row)
	}
	return parts, nil
}

// columnOf returns the place of a column.
func columnOf(rows [][]string, name string) (int, error) {
	column := slices.Index(rows[0], name)
	if column < 0 {
		return 0, fmt.Errorf("no column %q: there are %q", name, rows[0])
	}
	return column, nil
}
