package monitoring_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// Prometheus' own tool checks the rules, and runs their tests. On a build server it must be there.
func TestTheRulesDoAsTheirTestsSay(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("ZK_TEST") == "required" {
			t.Fatal("promtool is missing, and required: scripts/setup-promtool installs it")
		}
		t.Skip("promtool is missing: scripts/setup-promtool installs it")
	}
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Each series and each label of the rules exists, each alert has a test in which it fires, and the
// page lists it.
func TestTheRulesUseDocumentedMetrics(t *testing.T) {
	t.Parallel()
	rules, tests, page := text(t, "rules.yml"), text(t, "rules_test.yml"), text(t, "../observability.md")
	series, _ := documented(t)
	known := make(map[string]bool)
	for name, labels := range series {
		known[name] = true
		for label := range labels {
			known[label] = true
		}
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?:^|[^:a-z_])(zookeeper_[a-z_]+)`).FindAllStringSubmatch(rules, -1) {
		found++
		if !known[m[1]] {
			t.Errorf("rules.yml: there is no series and no label %s", m[1])
		}
	}
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	if found < 20 || len(alerts) < 5 {
		t.Errorf("%d names and %d alerts found; the patterns have come to miss them", found, len(alerts))
	}
	for _, alert := range alerts {
		if !regexp.MustCompile(`alertname: ` + alert[1] + `\n\s+exp_alerts:\n`).MatchString(tests) {
			t.Errorf("no test in which %s fires", alert[1])
		}
		if !strings.Contains(page, "`"+alert[1]+"`") {
			t.Errorf("docs/observability.md does not list %s", alert[1])
		}
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(file))(t))
}
