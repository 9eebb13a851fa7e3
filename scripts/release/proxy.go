package main

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeProxy writes the released modules in the form in which a module proxy serves them. It prints
// the paths of those that are commands.
func (t *tree) writeProxy(dir string) error {
	files, err := t.files()
	if err != nil {
		return err
	}
	for _, m := range t.modules {
		if !m.released {
			continue
		}
		versions := filepath.Join(dir, m.Module.Path, "@v")
		if err := os.MkdirAll(versions, 0o755); err != nil {
			return err
		}
		mod, err := os.ReadFile(filepath.Join(t.dir, m.dir, "go.mod"))
		if err != nil {
			return err
		}
		info, err := json.Marshal(map[string]any{"Version": t.version, "Time": time.Now().UTC()})
		if err != nil {
			return err
		}
		for name, content := range map[string][]byte{"list": []byte(t.version + "\n"), t.version + ".mod": mod, t.version + ".info": info} {
			if err := os.WriteFile(filepath.Join(versions, name), content, 0o644); err != nil {
				return err
			}
		}
		if err := t.writeZip(filepath.Join(versions, t.version+".zip"), m, files); err != nil {
			return err
		}
		if slices.Contains(files, path.Join(m.dir, "main.go")) {
			fmt.Println(m.Module.Path)
		}
	}
	return nil
}

// writeZip writes the files of m, and none of the modules below it. As go does, it adds the root module's
// license to a module that has none, because the sums of a module that users see are of all its files.
func (t *tree) writeZip(name string, m module, files []string) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	archive := zip.NewWriter(out)
	for _, file := range files {
		below := strings.TrimPrefix(file, strings.TrimPrefix(m.dir+"/", "./"))
		switch {
		case t.owner(file) == m.dir:
		case file == "LICENSE" && !slices.Contains(files, path.Join(m.dir, file)):
			below = file
		default:
			continue
		}
		entry, err := archive.Create(m.Module.Path + "@" + t.version + "/" + below)
		if err != nil {
			return err
		}
		if err := copyFile(entry, filepath.Join(t.dir, file)); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return out.Close()
}

// owner returns the folder of the innermost module that the file is in.
func (t *tree) owner(file string) string {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		for _, m := range t.modules {
			if m.dir == dir {
				return dir
			}
		}
	}
	return "."
}

func copyFile(to io.Writer, name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}
