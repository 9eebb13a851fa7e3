package docs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/limits.md names for each of the wire client's traps the test that shows how it is
// compensated. The tables of other projects' bugs and tests name a test or a reason in each row.
// TestTheTestsThatPagesNameExist checks that the tests exist.
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
		if strings.TrimSpace(cells[3]) == "" || !namedTest.MatchString(cells[4]) {
			t.Errorf("trap %d lacks a compensation or a test", n)
		}
	}
	for n := range traps {
		if !rows[n+1] {
			t.Errorf("trap %d is missing", n+1)
		}
	}
}

// lacking is how a reason begins: it names what docent does not have.
var lacking = regexp.MustCompile(`^(none: )?(no|there are no) [a-z].{10,}`)

// reasoned reports whether a row's last cell says what docent lacks, so that there is nothing to
// test. In a table with a column for reasons, the cell before it must be "none".
func reasoned(line string) bool {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	last := len(cells) - 1
	if !lacking.MatchString(cells[last]) {
		return false
	}
	if strings.HasPrefix(cells[last], "none: ") || strings.HasPrefix(cells[last], "there are no ") {
		return true
	}
	return last > 1 && cells[last-1] == "none"
}

func TestARowWithoutATestNeedsAReason(t *testing.T) {
	t.Parallel()
	for row, want := range map[string]bool{
		"| Queues | none | no such recipes; ZooKeeper is no broker |":                               true,
		"| Netflix/curator#1 | a cache is stale | there are no caches here: servers are asked |":    true,
		"| DistributedQueue.testPutMulti | none: no queues of several items |":                      true,
		"| Queues | none | as above |":                                                              false,
		"| Queues | none | |":                                                                       false,
		"| Queues | none | no |":                                                                    false,
		"| Queues | | no such recipes; ZooKeeper is no broker |":                                    false,
		"| Queues | `ATest` | no such recipes; ZooKeeper is no broker |":                            false,
		"| Queues | none | it will be tested as soon as there is time for that, and not before |":   false,
		"| etcd-io/etcd#1 | a wait can't be ended | a long text that speaks of something else |":    false,
		"| etcd-io/etcd#1 | no test shows that a wait can be ended, and this cell is long enough |": false,
	} {
		if got := reasoned(row); got != want {
			t.Errorf("%s: reasoned %v, want %v", row, got, want)
		}
	}
}
