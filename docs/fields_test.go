package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// maxFields is how many fields a struct may have: a reader keeps no more in mind.
const maxFields = 17

// moreFields are the structs with more, and why.
var moreFields = map[string]string{
	"cmd/docent/internal/cli.Settings":    "configuration: one field for each flag and variable",
	"cmd/docent/internal/execute.options": "configuration: one field for each flag of docent exec",
	"cmd/docent/internal/form.Contender":  "the JSON of an answer: one field for each key",
	"testing/zkserver.Frontend":           "a server of tests: one field for each fault that it can have",
	"testing/zkserver.Server":             "as Frontend",
}

// TestStructsHaveFewFields counts the fields of the structs of the product, with those of structs in them.
func TestStructsHaveFewFields(t *testing.T) {
	t.Parallel()
	met := make(map[string]bool)
	walk := func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2, d.IsDir() && (d.Name() == "lab" || d.Name() == "testdata"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			s, is := spec.Type.(*ast.StructType)
			if !is || s.Fields.NumFields() <= maxFields {
				return true
			}
			name := fmt.Sprintf("%s.%s", strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../"), spec.Name.Name)
			if met[name] = true; moreFields[name] == "" {
				t.Errorf("%s has %d fields, want at most %d: make parts of it, or say why not in moreFields", name, s.Fields.NumFields(), maxFields)
			}
			return true
		})
		return nil
	}
	must.OK(t, filepath.WalkDir("..", walk))
	for name := range moreFields {
		if !met[name] {
			t.Errorf("%s has no more than %d fields: take it out of moreFields", name, maxFields)
		}
	}
}
