package main_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	bench "github.com/docent-go/docent/testing/internal/bench"
)

// ran writes what a run would: docent's requests grow by the exponent.
func ran(t *testing.T, setting string, exponent float64, contenders ...string) string {
	t.Helper()
	r := bench.CurveResult{Setting: setting, Name: "waiters", Unit: "waiter"}
	for _, c := range contenders {
		var points []bench.Point
		for _, size := range []int{10, 100, 1000} {
			p := bench.Point{Size: size}
			p.Requests = 2 * math.Pow(float64(size), exponent)
			points = append(points, p)
		}
		r.Climbs = append(r.Climbs, bench.Climb{Contender: c, Points: points})
	}
	file := filepath.Join(t.TempDir(), "run.json")
	must.OK(t, os.WriteFile(file, must.Get(json.Marshal([]bench.CurveResult{r}))(t), 0o600))
	return file
}

func TestFold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	must.OK(t, os.WriteFile(page, []byte("before\n"+bench.ExponentsBegin+"old\n"+bench.ExponentsEnd+"after\n"), 0o600))
	must.OK(t, bench.Fold(dir, page, ran(t, "standalone, loopback", 1, bench.Docent, bench.Gozk)))
	must.OK(t, bench.Fold(dir, page,
		ran(t, "ensemble, 2ms of round trip added", 0, bench.Docent, bench.Gozk),
		ran(t, "standalone, loopback", 0.5, bench.Docent)))

	text := string(must.Get(os.ReadFile(page))(t))
	row := func(second, exponent string) string {
		return fmt.Sprintf("| `waiters` | %s | 10–1,000 | — | — | — | %s | —", second, exponent)
	}
	for what, want := range map[string]string{
		"what precedes":                  "before\n<!--",
		"what follows":                   "-->\nafter\n",
		"the later run":                  row("docent", "0.50"),
		"what the later run lacks":       row("go-zookeeper", "1.00"),
		"a setting with a round trip":    row("ensemble, 2ms of round trip added", "0.00"),
		"the setting above its contents": "Standalone, loopback:\n\n| curve | contender |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s, %q:\n%s", what, want, text)
		}
	}
	if strings.Contains(text, "old") {
		t.Errorf("the page keeps the old table:\n%s", text)
	}
	csv := string(must.Get(os.ReadFile(filepath.Join(dir, "waiters.csv")))(t))
	if want := "waiters,contender,setting,time µs,"; !strings.HasPrefix(csv, want) {
		t.Errorf("the file begins with %.40q, want %q", csv, want)
	}
	if lines := strings.Count(csv, "\n"); lines != 13 {
		t.Errorf("the file has %d lines, want 13", lines)
	}
}

func TestFold_refuses(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other.json")
	must.OK(t, os.WriteFile(other, []byte(`[{"name": "waiters"}]`), 0o600))
	file := ran(t, "standalone, loopback", 1, bench.Docent)
	for name, c := range map[string]struct {
		page  string
		files []string
		want  string
	}{
		"no files":           {"", nil, "as arguments"},
		"a file without one": {"", []string{other}, "no curve"},
		"a missing file":     {"", []string{other + "x"}, "no such file"},
		"another page":       {other, []string{file}, "no place for the exponents"},
	} {
		if err := bench.Fold(t.TempDir(), c.page, c.files...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

// docs/performance.md has the exponents of the values that are kept, and a drawing of each curve.
func TestThePageShowsTheCurves(t *testing.T) {
	t.Parallel()
	const docs, largest = "../../../docs/", 60_000
	page := string(must.Get(os.ReadFile(docs + "performance.md"))(t))
	table := must.Get(bench.Exponents(docs + "sizing/measured"))(t)
	if !strings.Contains(page, bench.ExponentsBegin+"\n"+table+bench.ExponentsEnd) {
		t.Errorf("docs/performance.md does not have the exponents of docs/sizing/measured (scripts/curves writes both):\n%s", table)
	}
	for _, file := range must.Get(filepath.Glob(docs + "sizing/measured/*.csv"))(t) {
		curve := strings.TrimSuffix(filepath.Base(file), ".csv")
		for _, drawing := range []string{"img/scale-" + curve + ".svg", "img/scale-" + curve + "-settings.svg"} {
			if info := must.Get(os.Stat(docs + drawing))(t); info.Size() > largest {
				t.Errorf("%s has %d bytes, want at most %d", drawing, info.Size(), largest)
			}
			if !strings.Contains(page, "]("+drawing+")") {
				t.Errorf("docs/performance.md lacks %s", drawing)
			}
		}
	}
}
