package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every example can be copied into another module, where it imports what docent offers to all. One
// of the copies is run, because all are built alike.
func TestExamplesCanBeCopied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) < 10 {
		t.Fatalf("found %d examples: %v", len(mains), err)
	}
	for _, main := range mains {
		name := filepath.Dir(main)
		if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
			continue // has requirements of its own
		}
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	writeModule(t, dir)
	for _, args := range [][]string{{"list", "-deps", "-test", "./..."}, {"run", "./leader-election"}} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// writeModule makes dir a module of a user's, which requires the present docent.
func writeModule(t *testing.T, dir string) {
	t.Helper()
	const docent = "github.com/docent-go/docent"
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if file == "go.mod" {
			text = []byte(strings.Replace(string(text), "module "+docent+"\n", "module example.org/copied\n", 1) +
				"\nrequire " + docent + " v0.0.0\n\nreplace " + docent + " => " + root + "\n")
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
