package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const long = "This sentence goes on and on with one word after another\nbecause a check of its length must find " +
	"that there are more words in it than the style allows"

// check returns the findings for a file's text, by the style of the repository.
func check(t *testing.T, name, text string) []string {
	t.Helper()
	s, err := readStyle("../../" + styles)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := checkFile(s, path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range found {
		all = append(all, strings.TrimPrefix(f.String(), path+":"))
	}
	return all
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{ // want: how a finding begins, or none
		"a word of a page":             {"a.md", "# Title\n\nIt leaves\na ghost behind.\n", "4: write 'orphan'"},
		"a word of a cell":             {"a.md", "| a | nobody waits |\n", "1: write 'the actor"},
		"a word in code":               {"a.md", "It is `TestNoGhost ghost`.\n", ""},
		"a word in a fence":            {"a.md", "```go\n// a ghost\n```\n", ""},
		"a word in quotation marks":    {"a.md", "Curator calls it \"ghost\".\n", ""},
		"part of a word":               {"a.md", "A standalone server notifies bystanders.\n", ""},
		"a long sentence":              {"a.md", "Short. " + long + ".\n", "1: a sentence of more than 25 words"},
		"a long item":                  {"a.md", "- " + long + "\n- b\n", "1: a sentence of more than 25 words"},
		"two sentences":                {"a.md", strings.Replace(long, "\nbecause", ".\nBecause", 1) + ".\n", ""},
		"parentheses":                  {"a.md", "It works (" + long + ").\n", ""},
		"a list of code":               {"a.md", "Checked by " + strings.Repeat("`TestA`,\n", 30) + "and `TestB`.\n", ""},
		"an opening":                   {"a.md", "All is well. Whoever asks is notified.\n", "1: a sentence opens with 'Whoever'"},
		"a question":                   {"a.md", "Who asks?\n", ""},
		"a long line":                  {"a.md", strings.Repeat("word. ", 20) + "\n", "1: a line of 120 columns"},
		"a phrase over two lines":      {"a.go", "package a\n\n// A waiter takes\n// note of it.\nvar x int\n", "3: write 'records'"},
		"a word of a comment":          {"a.go", "package a\n\n// A waiter\n// is a ghost.\nvar x int\n", "4: write 'orphan'"},
		"a long sentence of a comment": {"a.go", "package a\n\n// " + strings.ReplaceAll(long, "\n", " ") + ".\nvar x int\n", "3: a sentence of more"},
		"a name":                       {"a.go", "package a\n\n// Stands returns x.\nfunc Stands() {}\n", ""},
		"code in a comment":            {"a.go", "package a\n\n// So:\n//\n//\ta ghost\nvar x int\n", ""},
		"the output of an example":     {"a.go", "package a\n\nfunc f() {\n\t// Output:\n\t// a ghost\n}\n", ""},
		"Chinese":                      {"a.zh-CN.md", "ghost\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := check(t, c.file, c.text)
			if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0], c.want)) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// Every pattern names a file of the repository that has a finding: a stale one hides new faults.
func TestPendingFilesHaveFindings(t *testing.T) {
	t.Chdir("../..")
	patterns, err := readPending(pending)
	if err != nil {
		t.Fatal(err)
	}
	all, err := run([]string{"."})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range patterns {
		if !slices.ContainsFunc(all, func(f finding) bool { return matches([]string{p}, f.path) }) {
			t.Errorf("%s: %s has no findings: remove it", pending, p)
		}
	}
}
