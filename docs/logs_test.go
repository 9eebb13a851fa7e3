package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// logged is a call that logs, with the message up to its first variable part.
var logged = regexp.MustCompile(`(?:\.(?:Warn|Info|Error|Debug)|\bwarn)\(\s*(?:fmt\.Sprintf\()?"([^"%]+)`)

// TestTheLogLinesOfRecipesAreDocumented looks for the messages of recipes, nested modules included, in the page.
func TestTheLogLinesOfRecipesAreDocumented(t *testing.T) {
	t.Parallel()
	page, found := read(t, "docs/observability.md").text, 0
	must.OK(t, filepath.WalkDir("../recipes", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "recipetest":
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		for _, match := range logged.FindAllStringSubmatch(string(must.Get(os.ReadFile(path))(t)), -1) {
			if found++; !strings.Contains(page, "`"+strings.TrimSpace(match[1])) {
				t.Errorf("%s logs %q, which docs/observability.md does not have", path, match[1])
			}
		}
		return nil
	}))
	if found < 15 {
		t.Errorf("found %d log lines", found)
	}
}
