package main

import (
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const root = "github.com/docent-go/docent/"

// A report has the lines of each package, by its path below the root module's.
type report map[string][]string

// add adds the packages of the module in dir that users can import. The report is that for Linux.
func (r report) add(dir string) error {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.DepOnly}}\t{{.Name}}", "./...")
	list.Dir = dir
	list.Env = append(os.Environ(), "GOOS=linux", "PWD=") // a PWD of ours would be another folder
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var own []string
	for line := range strings.Lines(string(out)) {
		field := strings.Split(strings.TrimSpace(line), "\t")
		exports[field[0]] = field[1]
		if field[2] == "false" && field[3] != "main" && field[1] != "" && public(field[0]) {
			own = append(own, field[0])
		}
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, path := range own {
		pkg, err := compiled.Import(path)
		if err != nil {
			return err
		}
		r[strings.TrimPrefix(path, root)] = describe(pkg)
	}
	return nil
}

// public reports whether users import the package: examples are copied.
func public(path string) bool {
	below := strings.TrimPrefix(path, root)
	first, _, _ := strings.Cut(below, "/")
	return !slices.Contains(strings.Split(below, "/"), "internal") && !slices.Contains([]string{"cmd", "docs", "examples", "scripts"}, first)
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
