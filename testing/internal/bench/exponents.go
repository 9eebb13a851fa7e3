package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// exponents writes the exponents of all curves as Markdown: for each setting without an added round
// trip a table of all contenders, and for the others a table of docent.
func exponents(w io.Writer, all []values) {
	var near, far []string
	for _, v := range all {
		for _, s := range v.settings() {
			if strings.Contains(s, "loopback") && !slices.Contains(near, s) {
				near = append(near, s)
			} else if !strings.Contains(s, "loopback") && !slices.Contains(far, s) {
				far = append(far, s)
			}
		}
	}
	for _, s := range near {
		fmt.Fprintf(w, "%s:\n\n", upperFirst(s))
		exponentHead(w, all, "contender")
		for _, v := range all {
			for _, c := range v.contenders() {
				v.exponents(w, c, s, c)
			}
		}
		fmt.Fprintln(w)
	}
	if len(far) == 0 {
		return
	}
	fmt.Fprintf(w, "Docent with a round trip added:\n\n")
	exponentHead(w, all, "setting")
	for _, v := range all {
		for _, s := range far {
			v.exponents(w, docent, s, s)
		}
	}
	fmt.Fprintln(w)
}

// exponentHead writes the head of a table, whose second column is headed so.
func exponentHead(w io.Writer, all []values, second string) {
	columns := all[0].columns
	fmt.Fprintf(w, "| curve | %s | sizes | %s |\n", second, strings.Join(columns, " | "))
	fmt.Fprintf(w, "|---|---|--:|%s\n", strings.Repeat("--:|", len(columns)))
}

// exponents writes the row of a contender in a setting, if there is one.
func (v values) exponents(w io.Writer, contender, setting, second string) {
	var sizes []int
	columns := make([][]float64, len(v.columns))
	for _, l := range v.lines {
		if l.contender != contender || l.setting != setting {
			continue
		}
		sizes = append(sizes, l.size)
		for i, value := range l.values {
			columns[i] = append(columns[i], value)
		}
	}
	if len(sizes) == 0 {
		return
	}
	fmt.Fprintf(w, "| `%s` | %s | %s–%s |", v.curve, second, grouped(sizes[0]), grouped(sizes[len(sizes)-1]))
	for _, column := range columns {
		fmt.Fprintf(w, " %s |", exponentCell(powerLaw(sizes, column)))
	}
	fmt.Fprintln(w)
}

// exponentCell writes two decimals, and nothing for what is not known.
func exponentCell(b float64) string {
	if math.IsNaN(b) {
		return "—"
	}
	if text := fmt.Sprintf("%.2f", b); text != "-0.00" {
		return strings.Replace(text, "-", "−", 1)
	}
	return "0.00"
}

// The lines of a page between which its exponents are.
const (
	exponentsBegin = "<!-- exponents: scripts/curves writes what follows -->\n"
	exponentsEnd   = "<!-- exponents: end -->\n"
)

// replaceExponents writes the table into the page.
func replaceExponents(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(text), exponentsBegin)
	_, after, ended := strings.Cut(rest, exponentsEnd)
	if !begun || !ended {
		return fmt.Errorf("%s: no place for the exponents: it lacks %q or %q", page, exponentsBegin, exponentsEnd)
	}
	return writeFile(page, []byte(before+exponentsBegin+"\n"+table+exponentsEnd+after))
}

// grouped writes a whole number with its thousands apart.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
