package main

import (
	"fmt"
	"io"
	"slices"
)

const head = `| package | files (lines) | file: median/p90/max | functions: median/p90/max | cyclomatic p90/max | exports (+methods) | documented | comment:code | fields, max | uses between files | run back |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
`

// render writes the shapes as a Markdown table.
func render(w io.Writer, shapes []shape) error {
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	for _, s := range shapes {
		_, err := fmt.Fprintf(w, "| %s | %d (%d) | %s | %d: %s | %d/%d | %d (+%d) | %s | %.2f | %d | %d | %d (%s) |\n",
			s.name, len(s.files), sum(s.files), spread(s.files), len(s.functions), spread(s.functions),
			quantile(s.branches, 0.9), quantile(s.branches, 1),
			s.exports, s.methods, percent(s.documented, s.exports+s.methods),
			float64(s.comments)/float64(max(s.code, 1)), s.fields, s.arrows, s.back, percent(s.back, s.arrows))
		if err != nil {
			return err
		}
	}
	return nil
}

func spread(numbers []int) string {
	return fmt.Sprintf("%d/%d/%d", quantile(numbers, 0.5), quantile(numbers, 0.9), quantile(numbers, 1))
}

func sum(numbers []int) int {
	total := 0
	for n := range slices.Values(numbers) {
		total += n
	}
	return total
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", (100*part+whole/2)/whole)
}
