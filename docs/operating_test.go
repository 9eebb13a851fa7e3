package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// The figures that docs/operating.md has people alert on are figures that ZooKeeper has.
func TestTheFiguresOfMntrExist(t *testing.T) {
	t.Parallel()
	const leadersOnly = "zk_synced_followers" // three servers for one word are too many
	answer := must.Get(zktest.Shared(t).FourLetter(t.Context(), "mntr"))(t)
	named := regexp.MustCompile("`(zk_[a-z0-9_]+)`").FindAllStringSubmatch(read(t, "docs/operating.md").prose, -1)
	if len(named) < 10 {
		t.Errorf("%d figures named; the pattern has come to miss them", len(named))
	}
	for _, match := range named {
		if match[1] != leadersOnly && !strings.Contains(answer, "\n"+match[1]+"\t") {
			t.Errorf("mntr of a server has no %s:\n%s", match[1], answer)
		}
	}
}
