// Command matrixdocs makes the table of versions in README.md from runs of scripts/matrix.
//
//	go run ./scripts/matrixdocs           # make matrix-docs
//	go run ./scripts/matrixdocs -check
//
// lab/matrix.md keeps the latest run of each cell. Runs of .cache/matrix/runs.tsv, which scripts/matrix
// writes, replace those. The table of versions follows from the cells. With -check it reads no runs and
// writes nothing, and fails if the table does not follow from the cells, or if a cell has no line.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	runsFile = ".cache/matrix/runs.tsv"
	runsPage = "lab/matrix.md"
)

func main() {
	check := flag.Bool("check", false, "compare only")
	flag.Parse()
	if err := run(".", *check); err != nil {
		fmt.Fprintln(os.Stderr, "matrixdocs:", err)
		os.Exit(1)
	}
}

// run writes the tables of the repository at root, or compares them.
func run(root string, check bool) error {
	cells, err := listed(root)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, runsPage))
	if err != nil {
		return err
	}
	runs, err := recorded(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", runsPage, err)
	}
	if !check {
		if err := latest(filepath.Join(root, runsFile), runs); err != nil {
			return err
		}
	}
	return errors.Join(
		replace(filepath.Join(root, runsPage), "cells", cellTable(cells, runs), check),
		replace(filepath.Join(root, "README.md"), "versions", versionTable(cells, runs), check),
	)
}

// listed returns the names of all cells, in their order.
func listed(root string) ([]string, error) {
	list := exec.Command("bash", "scripts/matrix", "-list")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("scripts/matrix -list: %w", err)
	}
	var cells []string
	for line := range strings.Lines(string(out)) {
		cells = append(cells, strings.Fields(line)[0])
	}
	return cells, nil
}

// A cellRun is the latest run of a cell: "ok" or "FAILED", and when.
type cellRun struct{ result, date, commit string }

// row is a line of the cells' table that has a run.
var row = regexp.MustCompile(`^(\S+) +(ok|FAILED) +([0-9-]+) +(.+)$`)

// recorded returns the runs that the page shows, by cell.
func recorded(page string) (map[string]cellRun, error) {
	_, block, _, err := cut(page, "cells")
	if err != nil {
		return nil, err
	}
	runs := map[string]cellRun{}
	for line := range strings.Lines(block) {
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			runs[m[1]] = cellRun{m[2], m[3], m[4]}
		}
	}
	return runs, nil
}

// latest adds the runs of the file to runs. The later line of a cell counts. Without the file there are
// none.
func latest(file string, runs map[string]cellRun) error {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 5 {
			return fmt.Errorf("%s: %q: must have 5 fields", file, lines.Text())
		}
		runs[fields[0]] = cellRun{fields[1], fields[3], fields[4]} // without the seconds
	}
	return lines.Err()
}

// cellTable returns the table of all cells.
func cellTable(cells []string, runs map[string]cellRun) string {
	var b strings.Builder
	b.WriteString("```\n")
	for _, cell := range cells {
		r, ran := runs[cell]
		if !ran {
			fmt.Fprintf(&b, "%-36s not run\n", cell)
			continue
		}
		fmt.Fprintf(&b, "%-36s %-6s %s %s\n", cell, r.result, r.date, r.commit)
	}
	b.WriteString("```\n")
	return b.String()
}

// groups are the rows of the table of versions. The pattern's first group is the version, and the
// second what is said of it.
var groups = []struct {
	what    string
	cells   *regexp.Regexp
	remarks map[string]string
}{
	{"ZooKeeper", regexp.MustCompile(`^zk-([0-9.]+)-()`), nil},
	{"a rolling upgrade under load, and back", regexp.MustCompile(`^upgrade-([0-9.]+-[0-9.]+)()$`), nil},
	{"Curator, on the same paths", regexp.MustCompile(`^curator-([0-9.]+)-on-[0-9.]+(-in-part)?$`), map[string]string{"-in-part": "in part"}},
	{"kazoo, on the same paths", regexp.MustCompile(`^kazoo-([0-9.]+)-on-[0-9.]+(-without-locks)?$`), map[string]string{"-without-locks": "without locks"}},
	{"ZooKeeper, emulated", regexp.MustCompile(`^embedded-([0-9.]+)-()`), nil},
	{"ClickHouse Keeper, emulated", regexp.MustCompile(`^embedded-(keeper)(-silent)?-`), map[string]string{"-silent": ""}},
}

// versionTable returns the table of versions: those whose cells all passed, and for others how many did.
func versionTable(cells []string, runs map[string]cellRun) string {
	var b strings.Builder
	b.WriteString("| what | versions |\n|---|---|\n")
	for _, g := range groups {
		var versions []string
		remark, passed, all := map[string]string{}, map[string]int{}, map[string]int{}
		for _, cell := range cells {
			m := g.cells.FindStringSubmatch(cell)
			if m == nil {
				continue
			}
			if all[m[1]] == 0 {
				versions = append(versions, m[1])
			}
			all[m[1]]++
			if runs[cell].result == "ok" {
				passed[m[1]]++
			}
			if text := g.remarks[m[2]]; text != "" {
				remark[m[1]] = " (" + text + ")"
			}
		}
		for i, v := range versions {
			versions[i] = strings.NewReplacer("-", " to ", "keeper", "as of 2023 and 2026").Replace(v) + remark[v]
			if passed[v] < all[v] {
				versions[i] += fmt.Sprintf(", %d of %d cells", passed[v], all[v])
			}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", g.what, strings.Join(versions, "; "))
	}
	return b.String()
}

// cut splits the page at the block of the name.
func cut(page, name string) (before, block, after string, err error) {
	begin, end := "<!-- matrix: "+name+" -->\n", "<!-- end of matrix -->\n"
	before, rest, found := strings.Cut(page, begin)
	block, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", "", "", fmt.Errorf("no block %q", strings.TrimSpace(begin))
	}
	return before + begin, block, end + after, nil
}

// replace replaces the block of the file, or compares it.
func replace(file, name, table string, check bool) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, block, after, err := cut(string(page), name)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	table = "\n" + table + "\n"
	switch {
	case block == table:
		return nil
	case check:
		return fmt.Errorf("%s: the table of %s does not follow from the runs: run make matrix-docs", file, name)
	}
	return os.WriteFile(file, []byte(before+table+after), 0o644)
}
