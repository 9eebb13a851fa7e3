package framework_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/limits.md says of each of the wire client's traps which test shows that it
// is compensated.
func TestTheLimitsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"../docs/peer-bugs.md", "../docs/curator-tests.md"}
	tests := testsBelow(t, "..")
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	all := string(text)
	for _, doc := range others {
		more, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		all += string(more)
		for line := range strings.Lines(string(more)) {
			if row := strings.HasPrefix(line, "| ") && !strings.Contains(line, " | test |") && !strings.Contains(line, " | ours |"); row && !named.MatchString(line) && !reasoned(line) {
				t.Errorf("%s has a row with neither a test nor a reason: %s", doc, line)
			}
		}
	}
	for _, match := range named.FindAllStringSubmatch(all, -1) {
		if !tests[match[1]] {
			t.Errorf("there is no test %s", match[1])
		}
	}
	const traps = 47
	rows := map[int]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		n, err := strconv.Atoi(strings.TrimSpace(cells[min(1, len(cells)-1)]))
		if err != nil || len(cells) != 6 {
			continue
		}
		rows[n] = true
		if reason := strings.TrimSpace(cells[3]); reason == "" || !named.MatchString(cells[4]) && len(reason) < 100 {
			t.Errorf("trap %d has neither a test nor a reason", n)
		}
	}
	for n := range traps {
		if !rows[n+1] {
			t.Errorf("trap %d is missing", n+1)
		}
	}
}

// reasoned reports whether a row's last cell says why there is no test.
func reasoned(line string) bool {
	cells := strings.Split(strings.TrimSpace(line), "|")
	last := strings.TrimSpace(cells[len(cells)-2])
	return len(last) > 40 || len(last) > len("none") && !strings.Contains(last, "`")
}

// testsBelow returns the names of all tests and fuzz targets of the module.
func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(source), -1) {
			tests[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
