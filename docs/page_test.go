// Package docs_test keeps the documentation true: its Go runs, its links lead
// somewhere, its commands run, and what it names exists.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/docent-go/docent/internal/must"
)

// A page is one Markdown file of the repository.
type page struct {
	path   string // from the repository's root
	text   string
	prose  string // the text without its fences, line by line
	blocks []block
}

// A block is the content of a fence.
type block struct {
	line     int // of the fence
	language string
	text     string
}

// root is the repository's, seen from this package.
const root = ".."

// pages returns all Markdown files of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	var found []page
	must.OK(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root && entry.Name() != ".github":
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			found = append(found, read(t, strings.TrimPrefix(path, root+"/")))
		}
		return nil
	}))
	if len(found) < 10 {
		t.Fatalf("%d Markdown files: this is not the repository", len(found))
	}
	return found
}

// read returns the page at path, from the root.
func read(t *testing.T, path string) page {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(root, path)))(t)
	p := page{path: path, text: string(text)}
	p.split(t)
	return p
}

// split takes the blocks out of the text.
func (p *page) split(t *testing.T) {
	t.Helper()
	var prose, code []string
	inside := false
	for n, line := range strings.Split(p.text, "\n") {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !inside:
			p.blocks = append(p.blocks, block{line: n + 1, language: language})
		case fence:
			p.blocks[len(p.blocks)-1].text = strings.Join(code, "\n") + "\n"
			code = nil
		case inside:
			code = append(code, line)
		}
		if fence || inside {
			line = ""
		}
		prose = append(prose, line)
		inside = inside != fence
	}
	if inside {
		t.Errorf("%s: a fence is not closed", p.path)
	}
	p.prose = strings.Join(prose, "\n")
}

var heading = regexp.MustCompile(`(?m)^(#+) +(.*?) *$`)

// anchors returns what GitHub makes of the page's headings.
func (p *page) anchors() map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(p.prose, -1) {
		anchor := slug(match[2])
		for n := 1; found[anchor]; n++ {
			anchor = slug(match[2]) + "-" + strconv.Itoa(n)
		}
		found[anchor] = true
	}
	return found
}

var linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// slug returns the anchor of a heading.
func slug(title string) string {
	title = linked.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}
