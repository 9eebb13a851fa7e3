// Command api writes what docent exports into api/, a file for each package and a line for each
// name. With -check it writes nothing, and fails if the files differ from the code.
//
//	go run ./scripts/api           # make api
//	go run ./scripts/api -check    # make guards
//
// It reads the compiler's export data, so aliases, promoted methods and inferred types are as users
// see them. The first line of each file is the package's stability, from its documentation: a package
// without one is an error. docs/adr/0038-releases.md has the reasons.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// modules are the folders of the modules that users import. Commands have no API.
var modules = []string{".", "kerberos", "recipes/discovery/grpcresolver", "recipes/lock/grpclock", "recipes/schedule/crondocent", "recipes/schedule/gocrondocent"}

var errDiffers = errors.New(`the API differs from api/.
If that is intended, run "make api" and add a line to CHANGELOG.md: under Added for a new line (+),
under Changed or Removed, with how to adapt, for a line that is gone (-)`)

func main() {
	check := flag.Bool("check", false, "compare only")
	flag.Parse()
	if err := run("api", modules, *check); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// run compares the API of the modules with the files in dir, or writes them.
func run(dir string, modules []string, check bool) error {
	now := report{}
	for _, module := range modules {
		if err := now.add(module); err != nil {
			return fmt.Errorf("module %s: %w", module, err)
		}
	}
	if err := now.overpromised(); err != nil {
		return err
	}
	if !check {
		return now.write(dir)
	}
	before, err := read(dir)
	if err != nil {
		return err
	}
	changes := diff(before, now)
	for _, change := range changes {
		fmt.Println(change)
	}
	if len(changes) > 0 {
		return errDiffers
	}
	return nil
}

// write replaces the files of dir.
func (r report) write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, lines := range r {
		file := filepath.Join(dir, name+".txt")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(join(lines)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
