package docs_test

import (
	"go/types"
	"strings"
	"testing"
)

// docs/options.md has every option.
func TestTheOptionsAreListed(t *testing.T) {
	t.Parallel()
	universe := load(t)
	listed := read(t, "docs/options.md").prose
	found := 0
	for _, pkg := range []string{"barrier", "counter", "framework", "leader", "lock", "retry", "semaphore"} {
		imported, err := universe.importer.Import(universe.paths[pkg])
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range imported.Scope().Names() {
			fn, ok := imported.Scope().Lookup(name).(*types.Func)
			if !ok || !fn.Exported() || fn.Signature().Results().Len() != 1 {
				continue
			}
			named, ok := fn.Signature().Results().At(0).Type().(*types.Named)
			if !ok || !strings.HasSuffix(named.Obj().Name(), "Option") {
				continue
			}
			found++
			if !strings.Contains(listed, "`"+pkg+"."+name+"`") {
				t.Errorf("docs/options.md does not list %s.%s", pkg, name)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d options found; the test has come to miss them", found)
	}
}
