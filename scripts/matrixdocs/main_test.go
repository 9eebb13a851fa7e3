package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// The README says of versions what runs have shown.
func TestTheTablesFollowFromTheRuns(t *testing.T) {
	t.Parallel()
	must.OK(t, run("../..", true))
}

func TestTheTablesOfARun(t *testing.T) {
	t.Parallel()
	root := repository(t, "zk-3.9-a   ok     2026-01-01 abc\nzk-3.9-b   ok     2026-01-01 abc\n")
	if err := run(root, true); err == nil {
		t.Error("a page without its tables passes the check")
	}
	write(t, filepath.Join(root, runsFile), "zk-3.9-b\tok\t7\t2026-02-02\tdef\nzk-3.9-b\tFAILED\t8\t2026-02-02\tdef with changes\nkazoo-2.7-on-3.9-without-locks\tok\t1\t2026-02-02\tdef\n")
	must.OK(t, run(root, false))
	must.OK(t, run(root, true))
	pages := string(must.Get(os.ReadFile(filepath.Join(root, runsPage)))(t)) + string(must.Get(os.ReadFile(filepath.Join(root, "README.md")))(t))
	for _, want := range []string{
		"zk-3.9-a                             ok     2026-01-01 abc\n",
		"zk-3.9-b                             FAILED 2026-02-02 def with changes\n",
		"zk-3.8-a                             not run\n",
		"| ZooKeeper | 3.9, 1 of 2 cells; 3.8, 0 of 1 cells |\n",
		"| kazoo, on the same paths | 2.7 (without locks) |\n",
	} {
		if !strings.Contains(pages, want) {
			t.Errorf("the pages lack %q:\n%s", want, pages)
		}
	}
	write(t, filepath.Join(root, "README.md"), strings.ReplaceAll(string(must.Get(os.ReadFile(filepath.Join(root, "README.md")))(t)), "1 of 2", "2 of 2"))
	if err := run(root, true); err == nil || !strings.Contains(err.Error(), "README.md") {
		t.Errorf("the check of a README that promises more: %v", err)
	}
}

// repository returns a directory with pages, whose list of cells has the lines, and a matrix.
func repository(t *testing.T, lines string) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "README.md"), block("versions", ""))
	write(t, filepath.Join(root, runsPage), "# Page\n"+block("cells", lines)+"End.\n")
	write(t, filepath.Join(root, "scripts", "matrix"), "#!/bin/sh\necho zk-3.9-a 1\necho zk-3.9-b 1\necho zk-3.8-a 1\necho kazoo-2.7-on-3.9-without-locks 1\n")
	must.OK(t, os.Mkdir(filepath.Join(root, ".cache"), 0o755))
	return root
}

func block(name, lines string) string {
	return "<!-- matrix: " + name + " -->\n" + lines + "<!-- end of matrix -->\n"
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.OK(t, os.WriteFile(file, []byte(text), 0o755))
}
