package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

const source = `// Package thing is a thing.
//
// Stability: may change.
package thing

import "io"

const Limit = 3

type base struct{}

func (base) Promoted() {}

type Thing[T any] struct {
	base
	io.Reader
	Name   string
	hidden int
}

func (t *Thing[T]) Get(key string) (T, error) { panic(t.hidden) }

type Alias = Thing[int]

type Doer interface {
	Do(a int) error
	private()
}

type Kind int

func (Kind) String() string { return "" }

var Err error

func New(names ...string) *Alias { return nil }
`

var described = []string{
	"stability: may change",
	"const Limit untyped int = 3",
	"func New(names ...string) *Alias",
	"method (*Thing[T any]) Get(key string) (T, error)",
	"method (Kind) String() string",
	"method (Thing[T any]) Promoted()",
	"method (Thing[T any]) Read(p []byte) (n int, err error)",
	"type Alias = Thing[int]",
	"type Doer interface { Do(a int) error; unexported methods }",
	"type Kind int",
	"type Thing struct, Name string",
	"type Thing struct, embedded io.Reader",
	"type Thing[T any] struct",
	"var Err error",
}

// module writes a module of one package and returns its folder.
func module(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+root+"thing\n\ngo 1.25.0\n"), 0o644))
	must.OK(t, os.WriteFile(filepath.Join(dir, "thing.go"), []byte(text), 0o644))
	return dir
}

func TestAReportHasEachExportedName(t *testing.T) {
	got := report{}
	must.OK(t, got.add(module(t, source)))
	if lines := got["thing"]; !slices.Equal(lines, described) {
		t.Errorf("report:\n%s\nwant:\n%s", strings.Join(lines, "\n"), strings.Join(described, "\n"))
	}
}

func TestAnUnannouncedChangeFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "api")
	before := []string{module(t, source)}
	must.OK(t, run(dir, before, false))
	must.OK(t, run(dir, before, true))
	for name, change := range map[string][2]string{
		"an addition":           {"var Err error", "var Err, More error"},
		"a removal":             {"var Err error", ""},
		"a changed signature":   {"Do(a int) error", "Do(a int64) error"},
		"a changed constant":    {"Limit = 3", "Limit = 4"},
		"a receiver by pointer": {"func (Kind) String", "func (*Kind) String"},
		"another stability":     {"Stability: may change.", "Stability: stable."},
	} {
		after := []string{module(t, strings.Replace(source, change[0], change[1], 1))}
		if err := run(dir, after, true); err == nil {
			t.Errorf("%s was not reported", name)
		}
	}
	hidden := []string{module(t, strings.Replace(source, "hidden int", "hidden int; more int", 1))}
	must.OK(t, run(dir, hidden, true))
}

func TestAPackageStatesItsStability(t *testing.T) {
	for _, line := range []string{"", "// Stability: solid.", "// Stability: stable", "// Stability: stable.\n// Stability: may change."} {
		text := strings.Replace(source, "// Stability: may change.", "//"+strings.TrimPrefix(line, "//"), 1)
		if err := run(t.TempDir(), []string{module(t, text)}, false); err == nil || !strings.Contains(err.Error(), "package "+root+"thing: ") {
			t.Errorf("%q: got %v, want an error that names the package", line, err)
		}
	}
}

func TestAStablePackageShowsNoOther(t *testing.T) {
	for line, want := range map[string]bool{
		"func New(c recipes/model.Codec)":       true,
		"var Default []recipes/model.T":         true,
		"func New(c other/recipes/model.Codec)": false, // another package
		"func New(c recipes/models.Codec)":      false,
	} {
		r := report{"cache": {"stability: stable", line}, "recipes/model": {"stability: may change"}}
		if err := r.overpromised(); (err != nil) != want {
			t.Errorf("%s: %v, want an error: %v", line, err, want)
		}
		r["cache"][0] = "stability: internal to docent"
		if err := r.overpromised(); err != nil {
			t.Errorf("%s of an internal package: %v", line, err)
		}
	}
}

func TestAMissingReportIsADifference(t *testing.T) {
	if err := run(filepath.Join(t.TempDir(), "none"), []string{module(t, source)}, true); err == nil {
		t.Error("no difference to a report that does not exist")
	}
}

func TestChangesAreNamed(t *testing.T) {
	before := report{"lock": {"func A()", "func B()"}, "gone": {"func G()"}}
	now := report{"lock": {"func A()", "func C()"}, "new": {"func N()"}}
	want := []string{"- gone: func G()", "- lock: func B()", "+ lock: func C()", "+ new: func N()"}
	if got := diff(before, now); !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
}
