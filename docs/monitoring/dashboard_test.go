// Package monitoring_test checks the dashboard and the rules.
package monitoring_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// A dashboard is what is checked of one.
type dashboard struct {
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query string `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

var values = regexp.MustCompile(`^label_values\(([a-z_]+), ([a-z_]+)\)$`)

func TestTheDashboardUsesDocumentedMetrics(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("dashboard.json"))(t)
	var d dashboard
	must.OK(t, json.Unmarshal(text, &d))
	labels, metricOf := documented(t)
	used := make(map[string]bool)
	use := func(where, series string, with []string) {
		if labels[series] == nil {
			t.Errorf("%s: there is no series %s", where, series)
			return
		}
		used[metricOf[series]] = true
		for _, label := range with {
			if !labels[series][label] {
				t.Errorf("%s: %s has no label %s", where, series, label)
			}
		}
	}
	ids := make(map[int]bool)
	for _, p := range d.Panels {
		if p.Title == "" || p.ID == 0 || ids[p.ID] {
			t.Errorf("panel %d, %q: wants a title, and an id of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			selected := selector.FindAllStringSubmatch(target.Expr, -1)
			if len(selected) == 0 {
				t.Errorf("panel %s: no metric in %s", p.Title, target.Expr)
			}
			for _, s := range selected {
				use(p.Title, s[1], append(matchers(s[2]), groups(target.Expr)...))
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			match := values.FindStringSubmatch(v.Query)
			if match == nil {
				t.Fatalf("variable %s: can't read %s", v.Name, v.Query)
			}
			use("variable "+v.Name, match[1], match[2:])
		}
	}
	for _, metric := range metricOf {
		if !used[metric] {
			t.Errorf("no panel shows %s", metric)
		}
	}
}
