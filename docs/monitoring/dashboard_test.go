// Package monitoring_test checks the dashboard and the rules.
package monitoring_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// A dashboard is what is checked of one.
type dashboard struct {
	Panels []struct {
		ID         int       `json:"id"`
		Type       string    `json:"type"`
		Title      string    `json:"title"`
		Datasource source    `json:"datasource"`
		GridPos    rectangle `json:"gridPos"`
		Targets    []struct {
			RefID string `json:"refId"`
			Expr  string `json:"expr"`
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

// A source is where a panel has its data from.
type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// A rectangle is a place on the dashboard, which is 24 units wide.
type rectangle struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

func (r rectangle) overlaps(o rectangle) bool {
	return r.X < o.X+o.W && o.X < r.X+r.W && r.Y < o.Y+o.H && o.Y < r.Y+r.H
}

func read(t *testing.T) (d dashboard) {
	t.Helper()
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile("dashboard.json"))(t), &d))
	return d
}

// TestTheDashboardCanBeShown checks what Grafana needs of each panel.
func TestTheDashboardCanBeShown(t *testing.T) {
	t.Parallel()
	d, ids := read(t), make(map[int]bool)
	for i, p := range d.Panels {
		if p.Title == "" || p.ID == 0 || ids[p.ID] {
			t.Errorf("panel %d, %q: wants a title, and an id of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		place := p.GridPos
		if place.W < 1 || place.H < 1 || place.X < 0 || place.Y < 0 || place.X+place.W > 24 {
			t.Errorf("panel %s is at %+v, outside the grid", p.Title, place)
		}
		for _, other := range d.Panels[:i] {
			if place.overlaps(other.GridPos) {
				t.Errorf("panel %s is at %+v, over panel %s at %+v", p.Title, place, other.Title, other.GridPos)
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %s shows nothing", p.Title)
		}
		if want := (source{"prometheus", "${datasource}"}); p.Datasource != want {
			t.Errorf("panel %s has the source %+v, want the variable's: %+v", p.Title, p.Datasource, want)
		}
		if !slices.Contains([]string{"timeseries", "stat", "table", "heatmap", "state-timeline", "bargauge"}, p.Type) {
			t.Errorf("panel %s has the type %q, which Grafana lacks", p.Title, p.Type)
		}
		refs := make(map[string]bool)
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] {
				t.Errorf("panel %s: query %q wants a refId of its own", p.Title, target.Expr)
			}
			refs[target.RefID] = true
		}
	}
	if len(d.Templating.List) == 0 || d.Templating.List[0].Name != "datasource" || d.Templating.List[0].Type != "datasource" {
		t.Errorf("the variables are %+v, want the data source first", d.Templating.List)
	}
}

var values = regexp.MustCompile(`^label_values\(([a-z_]+), ([a-z_]+)\)$`)

func TestTheDashboardUsesDocumentedMetrics(t *testing.T) {
	t.Parallel()
	d := read(t)
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
	for _, p := range d.Panels {
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
