package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const docent = "github.com/docent-go/docent"

// A tree is a clone, as far as a release concerns it.
type tree struct {
	dir       string
	version   string // with its v
	changelog string
	support   string   // docs/support.md
	modules   []module // the root module first
}

// A module is one go.mod below the tree.
type module struct {
	dir      string // below the tree; "." for the root module
	Module   struct{ Path string }
	Require  []struct{ Path, Version string }
	Replace  []struct{ Old struct{ Path string } }
	work     string // its go.work
	released bool   // users import or install it: not an example, a script or the lab
}

func readTree(dir string) (*tree, error) {
	t := &tree{dir: dir}
	for file, text := range map[string]*string{"VERSION": &t.version, "CHANGELOG.md": &t.changelog, "docs/support.md": &t.support} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		*text = string(content)
	}
	t.version = "v" + strings.TrimSpace(t.version)
	files, err := t.files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if path.Base(file) != "go.mod" || strings.Contains(file, "testdata/") {
			continue
		}
		m, err := readModule(dir, path.Dir(file))
		if err != nil {
			return nil, err
		}
		t.modules = append(t.modules, m)
	}
	slices.SortFunc(t.modules, func(a, b module) int { return strings.Compare(a.dir, b.dir) })
	return t, nil
}

// files lists what git has, or would add.
func (t *tree) files() ([]string, error) {
	out, err := t.git("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
	files := strings.Fields(out)
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(filepath.Join(t.dir, file))
		return err != nil // deleted, and not committed
	}), err
}

func (t *tree) git(args ...string) (string, error) {
	command := exec.Command("git", append([]string{"-C", t.dir}, args...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}

func readModule(root, dir string) (module, error) {
	m := module{dir: dir, released: !strings.HasPrefix(dir, "examples/") && !strings.HasPrefix(dir, "scripts/") && dir != "lab"}
	out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(root, dir, "go.mod")).Output()
	if err != nil {
		return m, fmt.Errorf("%s/go.mod: %w", dir, err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("%s/go.mod: %w", dir, err)
	}
	if work, err := os.ReadFile(filepath.Join(root, dir, "go.work")); err == nil {
		m.work = string(work)
	}
	return m, nil
}

// tags are those of all modules that users import or install.
func (t *tree) tags() []string {
	var tags []string
	for _, m := range t.modules {
		if m.released {
			tags = append(tags, path.Join(m.dir, t.version))
		}
	}
	return tags
}
