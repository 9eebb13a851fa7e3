// Command shape measures the form of Go packages: files, functions, branches, exports,
// comments, and how the files of a package use each other. It prints a Markdown table.
//
//	go run ./scripts/shape                                  # docent's own packages
//	go run ./scripts/shape ./framework ./recipes/lock       # some of them
//	go run ./scripts/shape go.etcd.io/etcd/client/v3@v3.6.5/concurrency golang.org/x/sync@v0.23.0/semaphore
//
// An argument is a directory, or a package of a published module as module@version/directory.
// Tests are not measured.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// own lists docent's packages in the order of the dependency rules.
var own = []string{
	"retry", "listeners", "framework", "framework/internal/*", "recipes/internal/*",
	"recipes/*", "testing/*", "testing/internal/*",
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		for _, pattern := range own {
			dirs, err := filepath.Glob(pattern)
			if err != nil {
				return err
			}
			args = append(args, dirs...)
		}
	}
	var shapes []shape
	for _, arg := range args {
		dir, err := locate(arg)
		if err != nil {
			return err
		}
		s, err := measure(arg, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		if len(s.files) > 0 {
			shapes = append(shapes, s)
		}
	}
	return render(os.Stdout, shapes)
}
