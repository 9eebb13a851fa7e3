package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// markdown writes the report's tables.
func (r *report) markdown(w io.Writer) {
	fmt.Fprintf(w, "%s UTC, %s, %d rounds.\n", r.Date, r.Machine, r.Rounds)
	var versions []string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		versions = append(versions, name+" "+r.Versions[name])
	}
	fmt.Fprintf(w, "%s.\n", strings.Join(versions, "; "))
	if r.Quick {
		fmt.Fprintf(w, "\n**A quick run: it shows that everything works, and its figures mean nothing.**\n")
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(w, "\n**%s**\n", skipped)
	}
	r.bars(w)
	for _, s := range r.Settings {
		fmt.Fprintf(w, "\n### %s\n\nA small read takes %s.\n", upperFirst(s.Setting), short(float64(s.RoundTrip)))
		for _, sc := range s.Scenarios {
			sc.markdown(w)
		}
	}
}

// bars writes what was to be reached, and what was.
func (r *report) bars(w io.Writer) {
	fmt.Fprintf(w, "\n### Bars\n\n| scenario | setting | bar | measured | |\n|---|---|---|--:|---|\n")
	met, judged := 0, 0
	for _, s := range r.Settings {
		for _, sc := range s.Scenarios {
			for _, v := range sc.Bars {
				measured := "—"
				if v.Judged {
					judged++
					measured = fmt.Sprintf("%.2f", v.Measured)
				}
				if v.Met {
					met++
				}
				fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", sc.Title, s.Setting, v.Bar, measured, v.word())
			}
		}
	}
	fmt.Fprintf(w, "\n%d of %d met.\n", met, judged)
}

// markdown writes one scenario's table.
func (s scenarioResult) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n#### %s (`%s`)\n\n", upperFirst(s.Title), s.Name)
	if s.Floor != "" {
		fmt.Fprintf(w, "Floor: %s.\n\n", s.Floor)
	}
	if s.Pipelined != "" {
		fmt.Fprintf(w, "Pipelined floor (`%s`): %s.\n\n", pipelined, s.Pipelined)
	}
	if s.Weighed {
		fmt.Fprintf(w, "| | KiB each | peak MiB | requests each |\n|---|--:|--:|--:|\n")
	} else {
		fmt.Fprintf(w, "| | p50 | p99 | per second | × floor | × docent | requests | allocations | CPU µs | peak MiB |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	}
	for _, f := range s.Contenders {
		switch {
		case f.Error != "":
			fmt.Fprintf(w, "| %s | **FAILED**: %s |\n", f.Contender, strings.Join(strings.Fields(f.Error), " "))
		case s.Weighed:
			fmt.Fprintf(w, "| %s | %s | %s | %.1f |\n", f.Contender, number(f.KiBEach, 1), number(f.PeakMiB, 0), f.Requests)
		default:
			fmt.Fprintf(w, "| %s | %s | %s | %.0f | %s | %s | %.1f | %s | %s | %s |\n", f.Contender, short(f.P50), short(f.P99), f.Rate,
				number(f.OfFloor, 2), number(f.OfDocent, 2), f.Requests, number(f.Allocs, 1), number(f.CPU/1e3, 1), number(f.PeakMiB, 0))
		}
	}
	if s.Lacks != "" {
		fmt.Fprintf(w, "\nLeft out: %s.\n", s.Lacks)
	}
}

// number writes nothing for 0, which is what is not known.
func number(v float64, decimals int) string {
	if v == 0 || math.IsNaN(v) {
		return "—"
	}
	return fmt.Sprintf("%.*f", decimals, v)
}

// short writes nanoseconds for people, with three digits.
func short(ns float64) string {
	switch d := time.Duration(ns); {
	case d < time.Microsecond:
		return fmt.Sprintf("%.0f ns", ns)
	case d < time.Millisecond:
		return fmt.Sprintf("%.*f µs", decimals(ns/1e3), ns/1e3)
	default:
		return fmt.Sprintf("%.*f ms", decimals(ns/1e6), ns/1e6)
	}
}

func decimals(v float64) int {
	switch {
	case v < 10:
		return 2
	case v < 100:
		return 1
	default:
		return 0
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
