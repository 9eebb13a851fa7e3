package docs_test

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

const module = "github.com/docent-go/docent"

// An identifier in brackets is a link in every exported doc comment, and the link leads somewhere. go/doc
// prints the brackets of an unknown name, such as a method of an alias, and of a name that a letter follows.
func TestBracketsInGodocAreLinks(t *testing.T) {
	t.Parallel()
	packages := make(map[string]*doc.Package)
	named := make(map[string]bool)
	for _, pkg := range documented(t) {
		packages[pkg] = parsePackage(t, pkg)
		for name := range docsOf(packages[pkg]) {
			for one := range strings.SplitSeq(name, ", ") {
				named[module+"/"+pkg+"."+one] = true
			}
		}
		for _, typ := range packages[pkg].Types {
			ast.Inspect(typ.Decl, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok {
					for _, id := range field.Names {
						named[module+"/"+pkg+"."+typ.Name+"."+id.Name] = true
					}
				}
				return true
			})
		}
	}
	links := 0
	for pkg, parsed := range packages {
		parser := parsed.Parser()
		for name, text := range docsOf(parsed) {
			found, broken := linksOf(parser.Parse(text))
			links += len(found)
			for _, link := range found {
				if strings.HasPrefix(link, module) && !named[link] {
					broken = append(broken, link)
				}
			}
			for _, b := range broken {
				t.Errorf("%s: the comment of %s: %s is no link", pkg, name, b)
			}
		}
	}
	if links < 500 {
		t.Errorf("%d links found; the test has come to miss them", links)
	}
}

// The check has to be able to fail.
func TestABrokenLinkIsFound(t *testing.T) {
	t.Parallel()
	parser := comment.Parser{LookupSym: func(recv, name string) bool { return recv == "" && name == "Known" }}
	for text, want := range map[string]int{
		"[Known] and [fmt.Print]":   0,
		"[Unknown]":                 1,
		"[Known.Method], [Known]s":  2,
		"Of[T], a[i], \"[Quoted\"]": 0,
		"- in a list, [Unknown]":    1,
		"Code:\n\n\t[Unknown]":      0,
	} {
		if _, broken := linksOf(parser.Parse(text)); len(broken) != want {
			t.Errorf("%q: %q are no links, want %d", text, broken, want)
		}
	}
}

// documented returns the packages whose API is recorded, by their paths from the root.
func documented(t *testing.T) []string {
	t.Helper()
	var all []string
	api := filepath.Join(root, "api")
	must.OK(t, filepath.WalkDir(api, func(path string, _ fs.DirEntry, err error) error {
		if pkg, ok := strings.CutSuffix(path, ".txt"); ok {
			all = append(all, filepath.ToSlash(must.Get(filepath.Rel(api, pkg))(t)))
		}
		return err
	}))
	return all
}

// parsePackage returns the documentation of a package.
func parsePackage(t *testing.T, pkg string) *doc.Package {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range must.Get(filepath.Glob(filepath.Join(root, pkg, "*.go")))(t) {
		if !strings.HasSuffix(path, "_test.go") {
			files = append(files, must.Get(parser.ParseFile(fset, path, nil, parser.ParseComments))(t))
		}
	}
	return must.Get(doc.NewFromFiles(fset, files, module+"/"+pkg))(t)
}

// docsOf returns the doc comments of a package by what they document.
func docsOf(p *doc.Package) map[string]string {
	all := map[string]string{"the package": p.Doc}
	values := func(list []*doc.Value) {
		for _, v := range list {
			all[strings.Join(v.Names, ", ")] = v.Doc
		}
	}
	funcs := func(recv string, list []*doc.Func) {
		for _, f := range list {
			all[recv+f.Name] = f.Doc
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, typ := range p.Types {
		all[typ.Name] = typ.Doc
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
	}
	return all
}

var bracketed = regexp.MustCompile(`(?:^|[^\w"])(\[\*?(?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?\]\w*)`)

// linksOf returns the names that a comment links, and what is in brackets and is no link.
func linksOf(d *comment.Doc) (links, broken []string) {
	text := func(list []comment.Text) {
		for _, part := range list {
			switch part := part.(type) {
			case comment.Plain:
				for _, match := range bracketed.FindAllStringSubmatch(string(part), -1) {
					broken = append(broken, match[1])
				}
			case *comment.DocLink:
				links = append(links, strings.TrimSuffix(part.ImportPath+"."+strings.TrimPrefix(part.Recv+"."+part.Name, "."), "."))
			}
		}
	}
	var blocks func(list []comment.Block)
	blocks = func(list []comment.Block) {
		for _, b := range list {
			switch b := b.(type) {
			case *comment.Paragraph:
				text(b.Text)
			case *comment.Heading:
				text(b.Text)
			case *comment.List:
				for _, item := range b.Items {
					blocks(item.Content)
				}
			}
		}
	}
	blocks(d.Content)
	return links, broken
}
