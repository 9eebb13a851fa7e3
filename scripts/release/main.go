// Command release checks that the tree is ready to be released, and prints the tags to be made.
//
//	go run ./scripts/release            # all checks, and the tags; nothing is changed
//	go run ./scripts/release -check     # make guards: only what has to agree at any time
//	go run ./scripts/release -proxy dir # the modules as a module proxy would serve them
//	go run ./scripts/release -modules   # the folders of the modules that users get
//
// "make release" runs it with all other checks of a release. The tags are made and pushed by hand.
// docs/adr/0038-releases.md has the reasons.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "check only that VERSION, CHANGELOG.md and all go.mod agree")
	proxy := flag.String("proxy", "", "write a module proxy of the tree into this `folder`")
	modules := flag.Bool("modules", false, "list the folders of the modules that users get")
	flag.Parse()
	do := func() error { return run(".", *check, *proxy) }
	if *modules {
		do = func() error { return list(".") }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// list prints the folders of the modules that users get, the root module's first.
func list(dir string) error {
	t, err := readTree(dir)
	if err != nil {
		return err
	}
	for _, m := range t.modules {
		if m.released {
			fmt.Println(m.dir)
		}
	}
	return nil
}

func run(dir string, checkOnly bool, proxy string) error {
	t, err := readTree(dir)
	if err != nil {
		return err
	}
	if err := t.agree(); err != nil || checkOnly {
		return err
	}
	if proxy != "" {
		return t.writeProxy(proxy)
	}
	if err := errors.Join(t.dated(), t.clean()); err != nil {
		return err
	}
	fmt.Println("Ready. To release this commit:")
	for _, tag := range t.tags() {
		fmt.Printf("    git tag -a %s -m %s\n", tag, tag)
	}
	fmt.Println("    git push --tags")
	return nil
}
