package docs_test

import (
	"strconv"
	"strings"
	"testing"
)

// docs/limits.md says of each of the wire client's traps which test shows that it
// is compensated, and the tables of what others suffered and tested name a test or a reason
// in each row. That the tests exist, TestTheTestsThatPagesNameExist sees.
func TestTheLimitsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	text := read(t, "docs/limits.md").text
	for _, other := range []string{"docs/peer-bugs.md", "docs/curator-tests.md"} {
		for line := range strings.Lines(read(t, other).text) {
			row := strings.HasPrefix(line, "| ") && !strings.Contains(line, " | test |") && !strings.Contains(line, " | ours |")
			if row && !namedTest.MatchString(line) && !reasoned(line) {
				t.Errorf("%s has a row with neither a test nor a reason: %s", other, line)
			}
		}
	}
	const traps = 47
	rows := map[int]bool{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		n, err := strconv.Atoi(strings.TrimSpace(cells[min(1, len(cells)-1)]))
		if err != nil || len(cells) != 6 {
			continue
		}
		rows[n] = true
		if reason := strings.TrimSpace(cells[3]); reason == "" || !namedTest.MatchString(cells[4]) && len(reason) < 100 {
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
