package main

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// clone has the files of a small clone that is ready to be released.
func clone() map[string]string {
	return map[string]string{
		"VERSION":              "0.2.0\n",
		"LICENSE":              "free\n",
		"CHANGELOG.md":         "# Changelog\n\n## [0.2.0] - 2026-11-22\n\n## [0.1.0] - 2026-01-01\n",
		"docs/support.md":      "`github.com/docent-go/docent` `…/cmd/docent`\n",
		"go.mod":               "module " + docent + "\n",
		"framework/client.go":  "package framework\n",
		"cmd/docent/go.mod":    "module " + docent + "/cmd/docent\n\nrequire " + docent + " v0.2.0\n",
		"cmd/docent/go.work":   "use .\n\nreplace " + docent + " => ../..\n",
		"cmd/docent/main.go":   "package main\n",
		"examples/one/go.mod":  "module " + docent + "/examples/one\n\nrequire " + docent + " v0.2.0\n\nreplace " + docent + " => ../..\n",
		"examples/one/main.go": "package main\n",
		"scripts/tool/go.mod":  "module " + docent + "/scripts/tool\n",
	}
}

// write commits the files in a folder of its own, and returns that.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.OK(t, os.WriteFile(file, []byte(text), 0o644))
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "one"},
	} {
		command := exec.Command("git", append([]string{"-C", dir}, args...)...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
	}
	return dir
}

func TestAReadyTree(t *testing.T) {
	dir := write(t, clone())
	must.OK(t, run(dir, true, ""))
	must.OK(t, run(dir, false, ""))
	want := []string{"v0.2.0", "cmd/docent/v0.2.0"}
	if tags := must.Get(readTree(dir))(t).tags(); !slices.Equal(tags, want) {
		t.Errorf("tags %q, want %q", tags, want)
	}
}

func TestWhatDoesNotAgreeIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new, want string }{
		"the changelog's version": {"CHANGELOG.md", "[0.2.0]", "[0.3.0]", `CHANGELOG.md: the first section is "0.3.0"`},
		"no changelog":            {"CHANGELOG.md", "## ", "# ", `the first section is ""`},
		"no version":              {"VERSION", "0.2.0", "v0.2", "VERSION:"},
		"an old requirement":      {"cmd/docent/go.mod", "v0.2.0", "v0.1.0", "cmd/docent/go.mod: requires"},
		"an example's":            {"examples/one/go.mod", "v0.2.0", "v0.1.0", "examples/one/go.mod: requires"},
		"a replacement":           {"cmd/docent/go.mod", "v0.2.0\n", "v0.2.0\n\nreplace " + docent + " => ../..\n", "go install refuses"},
		"no workspace":            {"cmd/docent/go.work", "replace", "// replace", "does not replace that by the clone"},
		"an unlisted module":      {"docs/support.md", "…/cmd/docent", "", "does not list"},
	} {
		t.Run(name, func(t *testing.T) {
			files := clone()
			files[c.file] = strings.Replace(files[c.file], c.old, c.new, 2)
			err := run(write(t, files), true, "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestWhatIsNotReadyIsRefused(t *testing.T) {
	files := clone()
	files["CHANGELOG.md"] = strings.Replace(files["CHANGELOG.md"], "2026-11-22", "unreleased", 1)
	undated := write(t, files)
	changed, tagged := write(t, clone()), write(t, clone())
	must.OK(t, os.WriteFile(filepath.Join(changed, "new.go"), nil, 0o644))
	must.OK(t, exec.Command("git", "-C", tagged, "tag", "cmd/docent/v0.2.0").Run())
	for dir, want := range map[string]string{
		undated: `the date of 0.2.0 is "unreleased"`,
		changed: "not committed",
		tagged:  "the tag cmd/docent/v0.2.0 exists",
	} {
		must.OK(t, run(dir, true, ""))
		if err := run(dir, false, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestTheProxyHasTheModulesUsersGet(t *testing.T) {
	proxy := t.TempDir()
	must.OK(t, run(write(t, clone()), false, proxy))
	for module, want := range map[string][]string{
		docent:                 {"CHANGELOG.md", "LICENSE", "VERSION", "docs/support.md", "framework/client.go", "go.mod"},
		docent + "/cmd/docent": {"LICENSE", "go.mod", "go.work", "main.go"},
	} {
		archive := must.Get(zip.OpenReader(filepath.Join(proxy, module, "@v", "v0.2.0.zip")))(t)
		defer archive.Close()
		var got []string
		for _, file := range archive.File {
			got = append(got, strings.TrimPrefix(file.Name, module+"@v0.2.0/"))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", module, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(proxy, docent, "examples")); err == nil {
		t.Error("the proxy has an example")
	}
}

var (
	action = regexp.MustCompile(`uses: (\S+)`)
	pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	script = regexp.MustCompile(`\bscripts/[a-z][a-z-]*`)
	target = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
)

// The workflows use actions by their commits, and call scripts and targets that exist.
func TestTheWorkflowsCanRun(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile := must.Get(os.ReadFile(filepath.Join(root, "Makefile")))(t)
	files := must.Get(filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml")))(t)
	actions, commands := 0, 0
	for _, file := range files {
		text := string(must.Get(os.ReadFile(file))(t))
		for _, match := range action.FindAllStringSubmatch(text, -1) {
			if actions++; !pinned.MatchString(match[1]) {
				t.Errorf("%s: %s: name the action's commit, and its version in a comment", file, match[1])
			}
		}
		for _, name := range script.FindAllString(text, -1) {
			commands++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
		for _, match := range target.FindAllStringSubmatch(text, -1) {
			commands++
			if !regexp.MustCompile(`(?m)^` + match[1] + `:`).Match(makefile) {
				t.Errorf("%s: there is no make %s", file, match[1])
			}
		}
	}
	if len(files) < 4 || actions < 8 || commands < 8 {
		t.Errorf("%d workflows, %d actions, %d commands: the patterns have come to miss them", len(files), actions, commands)
	}
}
