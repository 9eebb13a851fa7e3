package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// All Go of pages compiles. Fragments that a test runs (TestTheGoOfPagesIsRun) compile there. Of the
// others, whole files compile as they are, and fragments in the scene below. In those, two marks
// stand for code:
//
//	…      on a line of its own stands for: if err != nil { return err }
//	{ … }  stands for: { return nil }
func TestTheGoOfPagesCompiles(t *testing.T) {
	t.Parallel()
	u := load(t)
	homes := readHomes(t)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "go" || homes.run(b.text) {
				continue
			}
			for _, fault := range u.check(b.text) {
				t.Errorf("%s:%d: %s\n%s", p.path, b.line, fault, b.text)
			}
		}
	}
}

// The check has to be able to fail.
func TestGoThatDoesNotCompileIsFound(t *testing.T) {
	t.Parallel()
	u := load(t)
	for text, want := range map[string]string{
		"lease, err := mutex.Lock()\n…\n":                        "not enough arguments",
		"err := lock.Do(ctx, mutex, func() error { … })\n":       "cannot use",
		"framework.NoSuchName()\n":                               "undefined",
		"x := (\n":                                               "expected",
		"func f() error { return client.Close(ctx) }\n":          "too many arguments",
		"package main\n\nimport \"fmt\"\n\nfunc main() {}\n":     "imported and not used",
		"package main\n\nfunc main() { x := 1 }\n":               "declared and not used",
		"package main\n\nimport \"no/such\"\n\nvar _ = such.X\n": "could not import",
	} {
		faults := u.check(text)
		if len(faults) == 0 || !strings.Contains(faults[0], want) {
			t.Errorf("%q: faults %q, want one with %q", text, faults, want)
		}
	}
	if faults := u.check("lease, err := mutex.Lock(ctx)\n…\n"); len(faults) > 0 {
		t.Errorf("what is right is refused: %q", faults)
	}
}

// The first program of docs/service.md is examples/service, whose tests run it.
func TestTheServiceIsTheExample(t *testing.T) {
	t.Parallel()
	program := must.Get(os.ReadFile("../examples/service/main.go"))(t)
	for _, b := range read(t, "docs/service.md").blocks {
		if b.language == "go" {
			if b.text != string(program) {
				t.Errorf("docs/service.md shows\n%s\nexamples/service/main.go is\n%s", b.text, program)
			}
			break
		}
	}
	if n := strings.Count(string(program), "\n"); n > 60 {
		t.Errorf("the service has %d lines, want at most 60", n)
	}
}

// scene is what fragments find around them.
const scene = `
var (
	ctx    context.Context
	err    error
	client *framework.Client
	mutex  *lock.Mutex
	lease  *lock.Lease
	db     *sql.DB
	logger *zap.Logger
	t      *testing.T
	path   string
	data   []byte
	report []byte
	fence  int64
	today string
	shards, processes int
	etag   string
	servers string
	tracers trace.TracerProvider
	meters metric.MeterProvider
	server *zkserver.Server
	proxy  *zkproxy.Proxy
)

type Place struct{ Zone string }

func work(ctx context.Context) error { return ctx.Err() }
func publish(ctx context.Context, _ *lock.Lease) error { return ctx.Err() }
func lead(ctx context.Context, _ *lock.Lease) error { return ctx.Err() }
func cancelWork()                    {}
`

// check returns what a compiler has to say about the Go text.
func (u *universe) check(text string) []string {
	if strings.HasPrefix(text, "package ") || strings.Contains(text, "\npackage ") {
		return u.compile(text, false)
	}
	text = regexp.MustCompile(`(?m)^(\s*)…$`).ReplaceAllString(text, "${1}if err != nil { return err }")
	text = strings.ReplaceAll(text, "{ … }", "{ return nil }")
	declarations := u.imports(text) + scene + text
	if _, err := parser.ParseFile(token.NewFileSet(), "", declarations, parser.SkipObjectResolution); err == nil {
		return u.compile(declarations, true)
	}
	return u.compile(u.imports(text)+scene+"func _() error {\n"+text+"return nil\n}\n", true)
}

// imports returns the head of a file that imports what the fragment and the scene use.
func (u *universe) imports(text string) string {
	var head strings.Builder
	head.WriteString("package fragment\n\n")
	for _, name := range slices.Sorted(maps.Keys(u.paths)) {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(text + scene) {
			fmt.Fprintf(&head, "import %s %q\n", name, u.paths[name])
		}
	}
	return head.String()
}

// compile type-checks the file. A fragment need not use all that it declares.
func (u *universe) compile(source string, fragment bool) []string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "page.go", source, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	config := types.Config{Importer: u.importer, Error: func(err error) {
		if fault, ok := err.(types.Error); !ok || !fault.Soft || !fragment { //nolint:errorlint // it is handed over bare
			faults = append(faults, err.Error())
		}
	}}
	_, _ = config.Check("page", fset, []*ast.File{file}, nil) // Error gets every fault
	return faults
}
