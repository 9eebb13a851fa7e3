package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	target   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan = regexp.MustCompile("`[^`\n]*`")
)

// A relative link leads to a file of the repository, and its anchor to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	links := 0
	for _, p := range all {
		for _, match := range target.FindAllStringSubmatch(codeSpan.ReplaceAllString(p.prose, ""), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			links++
			checkLink(t, all, p, match[1])
		}
	}
	if links < 50 {
		t.Errorf("%d relative links found; the pattern has come to miss them", links)
	}
}

func checkLink(t *testing.T, all map[string]page, from page, link string) {
	t.Helper()
	path, anchor, _ := strings.Cut(link, "#")
	if path == "" {
		path = from.path
	} else {
		path = filepath.Join(filepath.Dir(from.path), path)
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		t.Errorf("%s: link to %s: there is no such file", from.path, link)
		return
	}
	if anchor == "" {
		return
	}
	to, ok := all[path]
	if !ok {
		t.Errorf("%s: link to %s: only pages have anchors", from.path, link)
	} else if !to.anchors()[anchor] {
		t.Errorf("%s: link to %s: %s has no such heading", from.path, link, path)
	}
}

// Every page of docs can be reached from the index, and every decision from its own.
func TestTheIndexListsEveryPage(t *testing.T) {
	t.Parallel()
	index, decisions := read(t, "docs/README.md"), read(t, "docs/adr/README.md")
	for _, p := range pages(t) {
		path, below := strings.CutPrefix(p.path, "docs/")
		from := index
		if name, isDecision := strings.CutPrefix(path, "adr/"); isDecision && name != "README.md" {
			path, from = name, decisions
		}
		if below && path != "README.md" && !strings.Contains(from.prose, "]("+path+")") {
			t.Errorf("%s does not list %s", from.path, path)
		}
	}
}

var namedFile = regexp.MustCompile("`((?:cmd|docs|examples|framework|internal|kerberos|lab|listeners|recipes|retry|scripts|testing)/[\\w./-]+\\.(?:go|json|md|sh|yml))`")

// A file that a page names by its path from the repository's root exists.
func TestTheFilesThatPagesNameExist(t *testing.T) {
	t.Parallel()
	everyName(t, namedFile, 10, func(p page) string { return p.prose }, func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	})
}
