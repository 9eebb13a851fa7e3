package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

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

// Every command of the README is run: here, or by continuous integration.
func TestTheCommandsOfTheREADME(t *testing.T) {
	t.Parallel()
	ci := must.Get(os.ReadFile(filepath.Join(root, ".ci", "run")))(t)
	checks := map[string]func(t *testing.T){
		"go run ./examples/quickstart": func(t *testing.T) {
			t.Helper()
			run := exec.CommandContext(t.Context(), "go", "run", "./examples/quickstart")
			run.Dir = root
			if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "acquired, fence") {
				t.Errorf("%v\n%s", err, out)
			}
		},
		"make test": func(t *testing.T) {
			t.Helper()
			if !regexp.MustCompile(`(?m)^exec make test( |$)`).Match(ci) {
				t.Errorf("continuous integration does not run it:\n%s", ci)
			}
		},
		"go get " + module + "/recipes/lock": func(t *testing.T) {
			t.Helper()
			if script := must.Get(os.ReadFile(filepath.Join(root, "scripts", "install-check")))(t); !strings.Contains(string(script), "for page in README.md ") {
				t.Error("scripts/install-check does not run it")
			}
		},
	}
	readme := read(t, "README.md")
	var named []string
	for _, b := range readme.blocks {
		named = append(named, commands(b)...)
	}
	for _, command := range named {
		check, ok := checks[command]
		if !ok {
			t.Errorf("%q is run by nobody", command)
			continue
		}
		t.Run(command, check)
	}
	for command := range checks {
		if !slices.Contains(named, command) {
			t.Errorf("the README does not show %q", command)
		}
	}
}

var (
	runs    = regexp.MustCompile(`go (?:run|test|vet|build)\b.* (\./[\w./-]+)`)
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
			if files, _ := filepath.Glob(filepath.Join(root, match[1], "*.go")); len(files) == 0 && !strings.HasSuffix(match[1], "...") {
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
