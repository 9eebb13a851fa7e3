// Package grafana_test checks the dashboard.
package grafana_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/doctable"
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

// prometheusName returns the name that OpenTelemetry's exporters give a metric, without
// what is added for the parts of a histogram.
func prometheusName(name, instrument, unit string) string {
	name = strings.ReplaceAll(name, ".", "_")
	if unit == "s" {
		name += "_seconds"
	}
	if instrument == "counter" {
		name += "_total"
	}
	return name
}

// documented returns the labels of each series that Prometheus has of the metrics in
// docs/observability.md, whose tables other tests compare with the code.
func documented(t *testing.T) (labels map[string]map[string]bool, metricOf map[string]string) {
	t.Helper()
	labels, metricOf = make(map[string]map[string]bool), make(map[string]string)
	for _, section := range []string{"Client", "Locks", "Kept nodes"} {
		rows, err := doctable.Read("../observability.md", section, "metric")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			metric, unit := doctable.Code(row["metric"])[0], doctable.Code(row["unit"])[0]
			series := []string{""}
			if row["instrument"] == "histogram" {
				series = []string{"_bucket", "_sum", "_count"}
			}
			for _, part := range series {
				name := prometheusName(metric, row["instrument"], unit) + part
				metricOf[name] = metric
				labels[name] = map[string]bool{"job": true, "le": part == "_bucket"}
				for _, key := range doctable.Code(row["attributes"]) {
					labels[name][strings.ReplaceAll(key, ".", "_")] = true
				}
			}
		}
	}
	return labels, metricOf
}

var (
	selector = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)[=!]~?"`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
	values   = regexp.MustCompile(`^label_values\(([a-z_]+), ([a-z_]+)\)$`)
)

func TestTheDashboardUsesDocumentedMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docent.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
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

func matchers(selector string) (labels []string) {
	for _, m := range matcher.FindAllStringSubmatch(selector, -1) {
		labels = append(labels, m[1])
	}
	return labels
}

func groups(expr string) (labels []string) {
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ", ") {
			labels = append(labels, label)
		}
	}
	return labels
}
