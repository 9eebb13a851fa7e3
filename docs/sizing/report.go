package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// printMeasured prints the costs that are fitted to the measurements, then predictions and
// measurements, as Markdown.
func printMeasured(w io.Writer, dir string) error {
	all, err := readMeasurements(dir)
	if err != nil {
		return err
	}
	fits, lacking := fitAll(all)
	for _, err := range lacking {
		fmt.Fprintf(w, "No costs are fitted for %v.\n\n", err)
	}
	printComparisons(w, "requests of", "number", compareRequests(all))
	fmt.Fprintln(w)
	if received := compareBytes(all); len(received) > 0 {
		printComparisons(w, "replies to", "bytes", received)
		fmt.Fprintln(w)
	}
	printCosts(w, fits)
	for _, f := range fits {
		fmt.Fprintln(w)
		printComparisons(w, "servers' CPU of", "µs", f.compareServers(all))
	}
	if times := compareTimes(all); len(times) > 0 {
		fmt.Fprintln(w)
		printComparisons(w, "time of", "µs", times)
	}
	for _, f := range fits {
		if f.mode == "ensemble" {
			fmt.Fprintln(w)
			printPaper(w, f, reference)
		}
	}
	return nil
}

// The lines of the page between which the measurements are.
const (
	measuredBegin = "<!-- measurements: scripts/curves writes what follows -->\n"
	measuredEnd   = "<!-- measurements: end -->\n"
)

// replaceMeasured writes what printMeasured prints into the page.
func replaceMeasured(page, dir string) error {
	var printed strings.Builder
	if err := printMeasured(&printed, dir); err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(text), measuredBegin)
	_, after, ended := strings.Cut(rest, measuredEnd)
	if !begun || !ended {
		return fmt.Errorf("%s: no place for the measurements: it lacks %q or %q", page, measuredBegin, measuredEnd)
	}
	return os.WriteFile(page, []byte(before+measuredBegin+"\n"+printed.String()+"\n"+measuredEnd+after), 0o644)
}

// fitAll returns a fit for each mode that has enough measurements, and why the others have none.
func fitAll(all []measurement) (fits []fit, lacking []error) {
	var modes []string
	for _, m := range all {
		if mode := modeOf(m.setting); isNear(m.setting) && !slices.Contains(modes, mode) {
			modes = append(modes, mode)
		}
	}
	slices.Sort(modes)
	slices.Reverse(modes) // standalone first
	var one []float64
	for _, mode := range modes {
		f, err := fitServers(mode, all, one)
		if err != nil {
			lacking = append(lacking, fmt.Errorf("%s: %w", mode, err))
			continue
		}
		if mode == "standalone" {
			one = f.costs
		}
		fits = append(fits, f)
	}
	return fits, lacking
}

// printCosts prints what each part of a work costs the servers of each mode.
func printCosts(w io.Writer, fits []fit) {
	head, rule := "| servers' CPU, µs |", "|---|"
	for _, f := range fits {
		head, rule = head+" "+f.mode+" |", rule+"--:|"
	}
	fmt.Fprintf(w, "%s\n%s\n", head, rule)
	for i, name := range partNames() {
		fmt.Fprintf(w, "| %s |", name)
		for _, f := range fits {
			fmt.Fprintf(w, " %s |", figure(f.costs[i]))
		}
		fmt.Fprintln(w)
	}
}
