package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// shelf has the forty names that most programs need, by their packages.
func shelf() map[string][]string {
	return map[string][]string{
		"framework": {
			"NewClient", "WithSessionTimeout", "WithSlog", "Client.Close", "Client.Get", "Client.Set",
			"Client.Create", "Client.Delete", "Client.OnState", "ErrNotConnected",
		},
		"recipes/lock": {
			"NewMutex", "Do", "Mutex.TryLock", "ErrHeld", "Lease.Lost", "ErrLost", "Lease.Fence", "Lease.Guard",
			"NewRWMutex", "NewUnfairMutex", "NewMulti", "ContextWithOwner",
		},
		"recipes/lock/httplock": {"New"},
		"recipes/leader":        {"New", "Election.Run"},
		"recipes/cache":         {"New", "Cache.Ready", "Cache.Get"},
		"recipes/node":          {"New", "Node.Await"},
		"recipes/group":         {"New", "Group.Join"},
		"recipes/discovery":     {"New", "Registry.Register", "Registry.Watch"},
		"recipes/counter":       {"New", "NewValue"},
		"recipes/semaphore":     {"New"},
		"recipes/barrier":       {"NewDouble"},
		"recipes/partition":     {"New"},
	}
}

// The forty names of a beginner are exported, are in their package's documentation before its first
// heading, and are used in an Example whose output is checked.
func TestTheShelfOfABeginner(t *testing.T) {
	t.Parallel()
	count := 0
	for pkg, names := range shelf() {
		api := readText(t, filepath.Join(root, "api", pkg+".txt"))
		if pkg == "recipes/lock" { // Lease is an alias
			api += readText(t, filepath.Join(root, "api", "recipes/lease.txt"))
		}
		beginning, _, _ := strings.Cut(packageDoc(t, pkg), "\n# ")
		examples := checkedExamples(t, pkg)
		for _, name := range names {
			count++
			if !exported(api, name) {
				t.Errorf("%s.%s: not in api", pkg, name)
			}
			link := "[" + name + "]"
			if strings.HasPrefix(name, "Lease.") {
				link = "[lease." + name + "]" // the alias has no methods in godoc
			}
			if !strings.Contains(beginning, link) {
				t.Errorf("%s.%s: the beginning of the package's documentation does not link it:\n%s", pkg, name, beginning)
			}
			used := `\b` + filepath.Base(pkg) + `\.` + name + `\b`
			if _, method, ok := strings.Cut(name, "."); ok {
				used = `\.` + method + `\(`
			}
			if !regexp.MustCompile(used).MatchString(examples) {
				t.Errorf("%s.%s: no Example with an output uses it", pkg, name)
			}
		}
	}
	if count != 40 {
		t.Errorf("%d names, want 40", count)
	}
}

// exported reports whether a list of the directory api has the name, or the method as in Client.Get.
func exported(api, name string) bool {
	if recv, method, ok := strings.Cut(name, "."); ok {
		return regexp.MustCompile(`(?m)^method \(\*?` + recv + `(\[.*?\])?\) ` + method + `\(`).MatchString(api)
	}
	return regexp.MustCompile(`(?m)^(func|type|var|const) ` + name + `\b`).MatchString(api)
}

// packageDoc returns the documentation of a package.
func packageDoc(t *testing.T, pkg string) string {
	t.Helper()
	for _, file := range must.Get(filepath.Glob(filepath.Join(root, pkg, "*.go")))(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err == nil && parsed.Doc != nil && !strings.HasSuffix(file, "_test.go") {
			return parsed.Doc.Text()
		}
	}
	t.Fatalf("%s: no documentation", pkg)
	return ""
}

// checkedExamples returns the source of the package's Examples that have an output.
func checkedExamples(t *testing.T, pkg string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range must.Get(filepath.Glob(filepath.Join(root, pkg, "*_test.go")))(t) {
		source := must.Get(os.ReadFile(file))(t)
		fset := token.NewFileSet()
		parsed := must.Get(parser.ParseFile(fset, file, source, parser.ParseComments))(t)
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Example") {
				continue
			}
			text := string(source[fset.Position(fn.Pos()).Offset:fset.Position(fn.End()).Offset])
			if strings.Contains(strings.ToLower(text), "output:") {
				all.WriteString(text)
			}
		}
	}
	return all.String()
}

// unshown has the options of recipes that no Example shows, and why.
var unshown = map[string]string{
	"cache.WithRate":           "it bounds a speed, which an output does not show",
	"grpcresolver.WithSSLPort": "it takes one field of an instance for another",
	"lock.WithoutTraceparent":  "it leaves out what only a tracer of several processes shows",
}

// Every option of a recipe is used in an Example whose output is checked, or has a reason.
func TestTheOptionsOfRecipesAreShown(t *testing.T) {
	t.Parallel()
	var examples strings.Builder
	options := make(map[string]bool)
	result := regexp.MustCompile(`(?m)^func (\w+)\(.*\) (?:\w*Option|interface\{recipes/internal/boundary\..*\})$`)
	for _, pkg := range documented(t) {
		if pkg != "recipes" && !strings.HasPrefix(pkg, "recipes/") {
			continue
		}
		examples.WriteString(checkedExamples(t, pkg))
		for _, match := range result.FindAllStringSubmatch(readText(t, filepath.Join(root, "api", pkg+".txt")), -1) {
			options[filepath.Base(pkg)+"."+match[1]] = true
		}
	}
	if len(options) < 25 {
		t.Errorf("%d options found; the pattern has come to miss them", len(options))
	}
	for option := range options {
		shown := regexp.MustCompile(`\b` + option + `\(`).MatchString(examples.String())
		switch why := unshown[option]; {
		case !shown && why == "":
			t.Errorf("%s: no Example with an output uses it", option)
		case shown && why != "":
			t.Errorf("%s is used in an Example, and is excused because %s", option, why)
		}
	}
	for option := range unshown {
		if !options[option] {
			t.Errorf("%s is excused, and no recipe has it", option)
		}
	}
}

// The page of each lock and recipe says when to take another, and links the table of all.
func TestPagesOfRecipesSayWhenToTakeAnother(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range pages(t) {
		dir, name := filepath.Split(p.path)
		if dir != "docs/locks/" && dir != "docs/recipes/" || name == "revocation.md" { // that is no recipe
			continue
		}
		seen++
		if !regexp.MustCompile(`\*\*\[Take\sanother\]\(\.\./choosing\.md\)\*\*`).MatchString(p.prose) {
			t.Errorf("%s does not say when to take another, or does not link docs/choosing.md there", p.path)
		}
	}
	if seen < 14 {
		t.Errorf("%d pages of recipes", seen)
	}
}
