package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// replacedWords are the words that styles/glossary.md replaces, as they may be in an identifier. Two words
// mean one after the other.
var replacedWords = strings.Fields(`
	anybody beside befall befalls befell bury buried buries burial burials doubt doubts everybody everyone fate
	gave-up ghost ghosts give-up given-up gives-up giving-up haunts hear heard hears heed heeded heeds mend mended
	mends mourned nobody respite somebody someone stands stood strike strikes struck suffer suffers tell telling
	tells told vigil watchdog way ways world worlds`)

// allowedNames are identifiers that keep a replaced word, by their directory.
var allowedNames = map[string][]string{}

// camelWord is one word of an identifier.
var camelWord = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// Every identifier that the module and its nested ones declare keeps to the glossary.
func TestIdentifiersKeepToTheGlossary(t *testing.T) {
	t.Parallel()
	replaced := map[string]bool{}
	for _, word := range replacedWords {
		replaced[word] = true
	}
	allowed := map[string]bool{}
	for dir, names := range allowedNames {
		for _, name := range names {
			allowed[dir+"."+name] = true
		}
	}
	files, declared := token.NewFileSet(), 0
	must.OK(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, name := range declaredBy(file) {
			declared++
			if word := replacedWord(name.Name, replaced); word != "" && !allowed[dir+"."+name.Name] {
				t.Errorf("%s: %s has %q: see styles/glossary.md", files.Position(name.Pos()), name.Name, word)
			}
		}
		return err
	}))
	if declared < 10_000 {
		t.Errorf("%d identifiers found; the walk has come to miss them", declared)
	}
}

// replacedWord returns the word of the name that the glossary replaces, "" for none.
func replacedWord(name string, replaced map[string]bool) string {
	last := ""
	for _, word := range camelWord.FindAllString(name, -1) {
		word = strings.ToLower(word)
		for _, found := range []string{word, last + "-" + word} {
			if replaced[found] {
				return found
			}
		}
		last = word
	}
	return ""
}

// declaredBy returns the identifiers that the file declares.
func declaredBy(file *ast.File) (names []*ast.Ident) {
	add := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if name, ok := e.(*ast.Ident); ok {
				names = append(names, name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return names
}
