package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// A quantity is a column of a curve's table.
type quantity struct {
	name string
	of   func(point) float64
}

// quantities returns what is measured at each point. All but the last three are of an operation.
func quantities() []quantity {
	return []quantity{
		{"time µs", func(p point) float64 { return p.cost(true) / 1e3 }},
		{"p50 µs", func(p point) float64 { return p.P50 / 1e3 }},
		{"p99 µs", func(p point) float64 { return p.P99 / 1e3 }},
		{"requests", func(p point) float64 { return p.Requests }},
		{"sent B", func(p point) float64 { return p.Sent }},
		{"received B", func(p point) float64 { return p.Received }},
		{"servers' CPU µs", func(p point) float64 { return p.ServerCPU / 1e3 }},
		{"client's CPU µs", func(p point) float64 { return p.ClientCPU / 1e3 }},
		{"heap B", func(p point) float64 { return p.Heap }},
		{"stacks B", func(p point) float64 { return p.Stack }},
		{"CPU at rest %", func(p point) float64 { return 100 * p.AtRest }},
	}
}

// markdown writes the curve's tables, one for each contender, with an exponent below each column.
func (r curveResult) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n### %s (`%s`)\n\n%s.\n", upperFirst(r.Title), r.Name, upperFirst(r.Setting))
	for _, c := range r.Climbs {
		fmt.Fprintf(w, "\n%s:\n\n| %ss |", upperFirst(c.Contender), r.Unit)
		for _, q := range quantities() {
			fmt.Fprintf(w, " %s |", q.name)
		}
		fmt.Fprintf(w, "\n|--:|%s\n", strings.Repeat("--:|", len(quantities())))
		for _, p := range c.Points {
			fmt.Fprintf(w, "| %d |", p.Size)
			for _, q := range quantities() {
				fmt.Fprintf(w, " %s |", significant(q.of(p)))
			}
			fmt.Fprintln(w)
		}
		_, _ = io.WriteString(w, "| *exponent* |")
		for _, q := range quantities() {
			fmt.Fprintf(w, " %s |", number(exponent(c.Points, q.of), 2))
		}
		fmt.Fprintln(w)
		if c.Ended != "" {
			fmt.Fprintf(w, "\nEnded %s.\n", strings.Join(strings.Fields(c.Ended), " "))
		}
	}
}

// significant writes three digits, and nothing for what is not known. Memory that seems to shrink is
// not known.
func significant(v float64) string {
	if v <= 0 || math.IsNaN(v) {
		return "—"
	}
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
