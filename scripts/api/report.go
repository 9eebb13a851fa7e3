package main

import (
	"errors"
	"fmt"
	"go/importer"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const root = "github.com/docent-go/docent/"

// A report has the lines of each package, by its path below the root module's.
type report map[string][]string

// add adds the packages of the module in dir that users can import. The report is that for Linux.
func (r report) add(dir string) error {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.DepOnly}}\t{{.Name}}\t{{.Dir}}", "./...")
	list.Dir = dir
	list.Env = append(os.Environ(), "GOOS=linux", "PWD=") // a PWD of ours would be another folder
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	exports, dirs := map[string]string{}, map[string]string{}
	var own []string
	for line := range strings.Lines(string(out)) {
		field := strings.Split(strings.TrimSpace(line), "\t")
		exports[field[0]] = field[1]
		if field[2] == "false" && field[3] != "main" && field[1] != "" && public(field[0]) {
			own, dirs[field[0]] = append(own, field[0]), field[4]
		}
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var faults []error
	for _, path := range own {
		pkg, err := compiled.Import(path)
		if err != nil {
			return err
		}
		tier, err := stability(dirs[path])
		if err != nil {
			faults = append(faults, fmt.Errorf("package %s: %w", path, err))
		}
		r[strings.TrimPrefix(path, root)] = append([]string{"stability: " + tier}, describe(pkg)...)
	}
	return errors.Join(faults...)
}

// tiers are what a package's documentation may promise of its API. docs/support.md says what they mean.
var tiers = []string{"stable", "may change", "internal to docent"}

var statement = regexp.MustCompile(`(?m)^Stability: (.+)\.$`)

// stability returns the tier that the documentation of the package in dir states.
func stability(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	var stated []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", err
		}
		for _, match := range statement.FindAllStringSubmatch(parsed.Doc.Text(), -1) {
			stated = append(stated, match[1])
		}
	}
	if len(stated) != 1 || !slices.Contains(tiers, stated[0]) {
		return "", fmt.Errorf(`its documentation has to have one line "Stability: TIER.", of %q; it has %q`, tiers, stated)
	}
	return stated[0], nil
}

// public reports whether users import the package: examples are copied.
func public(path string) bool {
	below := strings.TrimPrefix(path, root)
	first, _, _ := strings.Cut(below, "/")
	return !slices.Contains(strings.Split(below, "/"), "internal") && !slices.Contains([]string{"cmd", "docs", "examples", "scripts"}, first)
}

// overpromised returns an error for each line of a package that shows a name of a less stable one: a change
// of that name changes the line, too.
func (r report) overpromised() error {
	rank := func(name string) int {
		return slices.Index(tiers, strings.TrimPrefix(r[name][0], "stability: "))
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(r)) {
		for _, other := range slices.Sorted(maps.Keys(r)) {
			if rank(other) <= rank(name) {
				continue
			}
			shows := regexp.MustCompile(`(^|[^\w/.])` + regexp.QuoteMeta(other) + `\.\w`)
			for _, line := range r[name] {
				if shows.MatchString(line) {
					faults = append(faults, fmt.Errorf("package %s promises more than package %s: %s", name, other, line))
				}
			}
		}
	}
	return errors.Join(faults...)
}

// read returns the report in dir: an empty one if dir doesn't exist.
func read(dir string) (report, error) {
	r := report{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		r[strings.TrimSuffix(filepath.ToSlash(name), ".txt")] = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r, err
}

// diff returns the lines that are gone, then those that are new, package by package.
func diff(before, now report) []string {
	all := maps.Clone(before)
	maps.Copy(all, now)
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		changes = append(changes, missing(name, "-", before[name], now[name])...)
		changes = append(changes, missing(name, "+", now[name], before[name])...)
	}
	return changes
}

// missing returns the lines of one that another lacks.
func missing(name, sign string, one, another []string) []string {
	has := map[string]bool{}
	for _, line := range another {
		has[line] = true
	}
	var changes []string
	for _, line := range one {
		if !has[line] {
			changes = append(changes, fmt.Sprintf("%s %s: %s", sign, name, line))
		}
	}
	return changes
}

func join(lines []string) string { return strings.Join(lines, "\n") + "\n" }
