package docs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

var namedTest = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)[`/]")

// The documentation names the test behind each guarantee, so the tests have to exist.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	tests := testsBelow(t, root)
	everyName(t, namedTest, 100, func(p page) string { return p.prose }, func(name string) bool { return tests[name] })
}

// everyName fails the test for each name that the pattern finds in pages, in text, and that does not exist, and if
// it finds fewer than least.
func everyName(t *testing.T, pattern *regexp.Regexp, least int, text func(page) string, exists func(name string) bool) {
	t.Helper()
	named := 0
	for _, p := range pages(t) {
		for _, match := range pattern.FindAllStringSubmatch(text(p), -1) {
			if named++; !exists(match[1]) {
				t.Errorf("%s: there is no %s", p.path, match[1])
			}
		}
	}
	if named < least {
		t.Errorf("%d names found; the pattern has come to miss them", named)
	}
}

var namedCase = regexp.MustCompile("`TestContract`(?:]\\([^)]*\\))?(?::| \\()\\s*\"([^\"]+)\"")

// TestContract is large, so a page names the case that it means.
func TestTheCasesOfContractsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	var cases strings.Builder
	for _, file := range must.Get(filepath.Glob(root + "/testing/locktest/*cases.go"))(t) {
		cases.Write(must.Get(os.ReadFile(file))(t))
	}
	everyName(t, namedCase, 13, func(p page) string { return p.text }, func(sentence string) bool {
		return strings.Contains(cases.String(), `"`+strings.Join(strings.Fields(sentence), " ")+`"`)
	})
}

// testsBelow returns the names of all tests, fuzz targets and benchmarks of the module.
func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	must.OK(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(source), -1) {
			tests[match[1]] = true
		}
		return err
	}))
	return tests
}

var telemetry = regexp.MustCompile("`(zookeeper\\.(?:lock|client)\\.[a-z_.]+)`")

// Metrics and attributes that pages name are in docs/observability.md, whose tables are held
// against what the code emits.
func TestTheMetricsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	emitted := read(t, "docs/observability.md").prose
	everyName(t, telemetry, 30, func(p page) string { return p.prose }, func(name string) bool {
		return strings.Contains(emitted, "`"+name+"`")
	})
}

// member is a method or a field, as in `Lease.Fence`, of a type whose package goes without saying.
var member = regexp.MustCompile(`^(?:(Client|StateChange|SessionHold)|(Lease|Mutex|RWMutex|Side|Multi|UnfairMutex|Local|SemaphoreMutex|Participant|WaitError|LostError))\.([A-Z]\w*)`)

var qualified = regexp.MustCompile(`^(barrier|cache|counter|discovery|framework|group|kerberos|leader|lock|locktel|node|partition|semaphore|retry|listeners|zkserver|zktest|zkproxy|zkenv|fault|locktest)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// The names that pages call as framework.X, lock.X.Y and so on are exported.
func TestTheNamesThatPagesUseExist(t *testing.T) {
	t.Parallel()
	apis := apiByPackage(t)
	named := 0
	for _, p := range pages(t) {
		if p.path == "CHANGELOG.md" { // names what is gone, too
			continue
		}
		for _, span := range codeSpan.FindAllString(p.prose, -1) {
			pkg, name, field := parts(strings.Trim(span, "`"))
			if pkg == "" {
				continue
			}
			named++
			if !exports(apis[pkg], name, field) {
				t.Errorf("%s: %s: there is no such name", p.path, span)
			}
		}
	}
	if named < 30 {
		t.Errorf("%d qualified names found; the pattern has come to miss them", named)
	}
}

// apiByPackage returns what api lists of each package, by the package's name.
func apiByPackage(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pkg := range documented(t) {
		all[path.Base(pkg)] = readText(t, filepath.Join(root, "api", pkg+".txt"))
	}
	all["lock"] += all["lease"] // lock.Lease is an alias
	return all
}

// exports reports whether the package with this API exports the name, and that has the member if one is given.
func exports(api, name, member string) bool {
	line := `(?m)^(func|type|var|const) ` + name + `\b`
	if member != "" {
		line = `(?m)^(method \(\*?` + name + `(\[.*\])?\) ` + member + `\(|type ` + name + `(\[.*\])? (struct|interface), ` + member + `\b)`
	}
	return regexp.MustCompile(line).MatchString(api)
}

// parts takes a name of this module apart, and returns nothing for any other code.
func parts(code string) (pkg, name, field string) {
	if match := qualified.FindStringSubmatch(code); match != nil {
		return match[1], match[2], match[3]
	}
	switch match := member.FindStringSubmatch(code); {
	case match == nil:
		return "", "", ""
	case match[1] != "":
		return "framework", match[1], match[3]
	default:
		return "lock", match[2], match[3]
	}
}

var (
	runs    = regexp.MustCompile(`go (?:run|test|vet|build)\b(?: -C (\S+))?.* (\./[\w./-]+)`)
	targets = regexp.MustCompile(`\bmake ([a-z-]+)`)
	scripts = regexp.MustCompile(`\bscripts/[a-z][a-z.-]*[a-z]`)
)

// The commands of pages exist: packages of the module, targets of the Makefile, scripts.
func TestTheCommandsOfPagesExist(t *testing.T) {
	t.Parallel()
	makefile := must.Get(os.ReadFile(filepath.Join(root, "Makefile")))(t)
	found := 0
	for _, p := range pages(t) {
		text := strings.Join(codeSpan.FindAllString(p.prose, -1), "\n")
		for _, b := range p.blocks {
			text += "\n" + strings.Join(commands(b), "\n")
		}
		for _, match := range runs.FindAllStringSubmatch(text, -1) {
			found++
			if files, _ := filepath.Glob(filepath.Join(root, match[1], match[2], "*.go")); len(files) == 0 && !strings.HasSuffix(match[2], "...") {
				t.Errorf("%s: %s: there is no such package", p.path, match[0])
			}
		}
		for _, match := range targets.FindAllStringSubmatch(text, -1) {
			found++
			if !regexp.MustCompile(`(?m)^` + match[1] + `:`).Match(makefile) {
				t.Errorf("%s: make %s: there is no such target", p.path, match[1])
			}
		}
		for _, script := range scripts.FindAllString(text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, script)); err != nil {
				t.Errorf("%s: %s: there is no such script", p.path, script)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d commands found; the pattern has come to miss them", found)
	}
}

// commands returns the commands of a block of shell, without their comments.
func commands(b block) []string {
	if b.language != "sh" {
		return nil
	}
	var all []string
	for line := range strings.Lines(b.text) {
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
