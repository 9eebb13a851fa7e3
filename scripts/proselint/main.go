// Command proselint checks the words and the sentences of Markdown pages and Go comments. The style
// is in styles/docent, in files of vale's form. See docs/glossary.md.
//
//	go run ./scripts/proselint                  # the repository, without what styles/pending lists
//	go run ./scripts/proselint recipes/lock     # these files and directories, pending ones too
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	styles  = "styles/docent"
	pending = "styles/pending"
)

func main() {
	findings, err := run(os.Args[1:])
	for _, f := range findings {
		fmt.Println(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proselint:", err)
		os.Exit(2)
	}
	if len(findings) > 0 {
		fmt.Fprintf(os.Stderr, "proselint: %d findings; docs/glossary.md has the rules\n", len(findings))
		os.Exit(1)
	}
}

// run returns what is wrong in the files below the arguments, or in the whole repository.
func run(args []string) ([]finding, error) {
	s, err := readStyle(styles)
	if err != nil {
		return nil, err
	}
	var skip []string
	if len(args) == 0 {
		args = []string{"."}
		if skip, err = readPending(pending); err != nil {
			return nil, err
		}
	}
	var all []finding
	for _, root := range args {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && path != root && hidden(entry.Name()):
				return filepath.SkipDir
			case entry.IsDir() || matches(skip, path):
				return nil
			}
			found, err := checkFile(s, path)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") || name == "testdata" }

// checkFile checks a page or a Go file, and no other.
func checkFile(s *style, path string) ([]finding, error) {
	split := map[string]func(string) ([]chunk, error){".md": markdown, ".go": comments}[filepath.Ext(path)]
	if split == nil || strings.HasSuffix(path, ".zh-CN.md") {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	chunks, err := split(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	found := s.check(chunks)
	if filepath.Ext(path) == ".md" {
		found = append(found, longLines(string(text))...)
	}
	for i := range found {
		found[i].path = path
	}
	return found, nil
}

// readPending returns the patterns of files that are not rewritten yet, one a line.
func readPending(path string) ([]string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	var patterns []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line, _, _ := strings.Cut(lines.Text(), "#"); strings.TrimSpace(line) != "" {
			patterns = append(patterns, strings.TrimSpace(line))
		}
	}
	return patterns, nil
}

// matches reports whether a pattern is the path, a directory above it (dir/), or the end of its
// name (*_test.go).
func matches(patterns []string, path string) bool {
	for _, p := range patterns {
		suffix, ending := strings.CutPrefix(p, "*")
		if ending && strings.HasSuffix(path, suffix) || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) || p == path {
			return true
		}
	}
	return false
}
