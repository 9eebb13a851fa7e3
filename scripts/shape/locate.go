package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// locate returns the directory that an argument means. A module that is not in the module
// cache is downloaded.
func locate(arg string) (string, error) {
	module, rest, published := strings.Cut(arg, "@")
	if !published {
		return arg, nil
	}
	version, sub, _ := strings.Cut(rest, "/")
	out, err := exec.Command("go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		return "", fmt.Errorf("download %s@%s: %w", module, version, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return "", fmt.Errorf("download %s@%s: %w", module, version, err)
	}
	return filepath.Join(found.Dir, sub), nil
}
