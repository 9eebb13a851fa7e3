package docs_test

import (
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// Every fragment of Go in a page is a piece of a file that tests run: of a test in docs/fragments or
// kerberos, of a program in examples, or of an Example whose output is checked. The program of the
// READMEs runs from the page itself: TestTheProgramOfTheREADME.
func TestTheGoOfPagesIsRun(t *testing.T) {
	t.Parallel()
	homes := readHomes(t)
	fragments := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			program := strings.HasPrefix(p.path, "README") && strings.HasPrefix(b.text, "package main\n")
			if b.language != "go" || program {
				continue
			}
			fragments++
			if !homes.run(b.text) {
				t.Errorf("%s:%d: no file that tests run has these lines:\n%s", p.path, b.line, b.text)
			}
		}
	}
	if fragments < 20 {
		t.Errorf("%d fragments found; the pattern has come to miss them", fragments)
	}
}

// The check has to be able to fail.
func TestAFragmentHasAHome(t *testing.T) {
	t.Parallel()
	homes := homes{squeeze("func f() {\n\tif a {\n\t\tb()\n\n\t\tc()\n\t}\n}\n")}
	for text, want := range map[string]bool{
		"if a {\n\tb()\n\n\tc()\n}\n":   true,
		"\tb()\n\n\tc()\n":              true,
		"b()\nc()\n":                    false, // not consecutive
		"if a {\n\tb()\n\n\tc(1)\n}\n":  false,
		"func f() {\n\t…\n\tif a {\n\n": false,
		"c(":                            false, // not a whole line
	} {
		if got := homes.run(text); got != want {
			t.Errorf("%q has a home: %v, want %v", text, got, want)
		}
	}
}

// homes are the texts that tests run, without indentation.
type homes []string

// run reports whether the text occurs, up to indentation, as consecutive lines of a home.
func (h homes) run(text string) bool {
	for _, home := range h {
		if strings.Contains(home, squeeze(text)) {
			return true
		}
	}
	return false
}

// squeeze removes the indentation, and begins and ends the text with an end of line.
func squeeze(text string) string {
	var squeezed strings.Builder
	squeezed.WriteString("\n")
	for line := range strings.Lines(text) {
		squeezed.WriteString(strings.TrimSpace(line) + "\n")
	}
	return squeezed.String()
}

// readHomes reads the files that tests run.
func readHomes(t *testing.T) homes {
	t.Helper()
	var found homes
	must.OK(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(name, ".") && path != root:
			return filepath.SkipDir
		case strings.HasPrefix(name, "example") && strings.HasSuffix(name, "_test.go"):
			found = append(found, readExamples(t, path)...)
		case path == root+"/kerberos/fragments_test.go": // a module of its own
			found = append(found, squeeze(readText(t, path)))
		case filepath.Ext(path) == ".go" && (strings.HasPrefix(path, root+"/docs/fragments/") || strings.HasPrefix(path, root+"/examples/")):
			found = append(found, squeeze(readText(t, path)))
		}
		return nil
	}))
	return found
}

// readExamples returns the bodies of a file's Examples. Go runs those that name their output.
func readExamples(t *testing.T, path string) []string {
	t.Helper()
	text := readText(t, path)
	fset := token.NewFileSet()
	file := must.Get(parser.ParseFile(fset, path, text, parser.ParseComments))(t)
	var bodies []string
	for _, example := range doc.Examples(file) {
		if example.Output != "" || example.EmptyOutput {
			from, to := fset.Position(example.Code.Pos()).Offset, fset.Position(example.Code.End()).Offset
			bodies = append(bodies, squeeze(text[from:to]))
		}
	}
	return bodies
}

func readText(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}
