package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A build has the test binaries of one mutant, each built when it is first needed.
type build struct {
	dir      string
	overlay  string // "" while nothing is broken
	binaries map[string]string
}

// newBuild returns a build with nothing broken, whose files are below parent.
func newBuild(parent string) (*build, error) {
	dir, err := os.MkdirTemp(parent, "mutation")
	return &build{dir: dir, binaries: make(map[string]string)}, err
}

func (b *build) remove() { _ = os.RemoveAll(b.dir) } // only temporary files are at stake

// replace puts the mutant in the place of its file.
func (b *build) replace(m mutant) error {
	file := filepath.Join(b.dir, filepath.Base(m.file))
	if err := os.WriteFile(file, m.source, 0o600); err != nil {
		return err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return err
	}
	b.overlay = filepath.Join(b.dir, "overlay.json")
	return os.WriteFile(b.overlay, text, 0o600)
}

// A buildError says why a mutant does not compile.
type buildError struct{ said string }

func (e *buildError) Error() string { return e.said }

// tests returns the test binary of a package.
func (b *build) tests(ctx context.Context, pkg string) (string, error) {
	if binary, ok := b.binaries[pkg]; ok {
		return binary, nil
	}
	binary := filepath.Join(b.dir, fmt.Sprintf("%d.test", len(b.binaries)))
	// Without symbols a binary is linked in half the time. The tests need not repeat vet's checks.
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+b.overlay, "-o", binary, pkg).CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", &buildError{lastLine(strings.ReplaceAll(string(out), b.dir+string(filepath.Separator), ""))}
	}
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("%s has no tests: %w", pkg, err)
	}
	b.binaries[pkg] = binary
	return binary, nil
}

// lastLine returns the last line of a compiler's output, which names the fault.
func lastLine(out string) string {
	out = strings.TrimSpace(out)
	return strings.TrimSpace(out[strings.LastIndex(out, "\n")+1:])
}
