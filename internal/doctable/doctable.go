// Package doctable reads the tables of a page of the documentation, so that tests
// can compare them with the code.
package doctable

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A Row is a row of a table: its cells by the heads of their columns.
type Row map[string]string

// Read returns the rows of the table in the file's section "## section" whose
// first column is headed first.
func Read(file, section, first string) ([]Row, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rows []Row
	var heads []string
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			inside = title == section
		}
		cells := cellsOf(line)
		switch {
		case !inside:
		case cells == nil:
			heads = nil
		case heads == nil && cells[0] == first:
			heads = cells
		case heads != nil && strings.Trim(cells[0], "-:") != "":
			rows = append(rows, row(heads, cells))
		}
	}
	if rows == nil {
		return nil, fmt.Errorf("doctable: %s has no table %q in its section %q", file, first, section)
	}
	return rows, nil
}

// ByCode returns the rows of a table, as [Read], by each code in their first column.
func ByCode(t testing.TB, file, section, first string) map[string]Row {
	t.Helper()
	rows, err := Read(file, section, first)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]Row)
	for _, row := range rows {
		for _, key := range Code(row[first]) {
			all[key] = row
		}
	}
	return all
}

// MustBeSame fails the test unless what is documented is what there is.
func MustBeSame[A, B any](t testing.TB, what string, documented map[string]A, found map[string]B) {
	t.Helper()
	want, got := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(found))
	if !slices.Equal(want, got) {
		t.Errorf("%s: documented are\n%q, the code's are\n%q", what, want, got)
	}
}

// cellsOf returns the cells of a table's line, nil for any other line.
func cellsOf(line string) []string {
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(cell)
	}
	return cells
}

func row(heads, cells []string) Row {
	r := make(Row)
	for i, head := range heads {
		if i < len(cells) {
			r[head] = cells[i]
		}
	}
	return r
}

// Code returns what a cell has between backticks.
func Code(cell string) []string {
	var all []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, match[1])
	}
	return all
}
