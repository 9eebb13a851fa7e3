package main_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	bench "github.com/docent-go/docent/lab/bench"
)

var updateBars = flag.Bool("update", false, "write the bars to testdata/bars.tsv, if each that has moved says why") //nolint:gochecknoglobals // a flag

const barsFile = "testdata/bars.tsv"

// A bar may move, but not silently: its earlier value, with the reason, is an entry of the table.
func TestBars(t *testing.T) {
	t.Parallel()
	recorded := string(must.Get(os.ReadFile(barsFile))(t))
	now := bench.BarLines()
	silent := bench.Silent(recorded, bench.Bars())
	for _, fault := range silent {
		t.Error(fault)
	}
	switch {
	case *updateBars && len(silent) == 0:
		if err := os.WriteFile(barsFile, []byte(now), 0o644); err != nil {
			t.Error(err)
		}
	case now != recorded:
		t.Errorf("the bars are not those of %s. To take them: go test ./bench -run='^TestBars$' -update", barsFile)
	}
}

func TestSilent(t *testing.T) {
	t.Parallel()
	const key = "uncontended\tloopback\tp50\twire"
	for name, c := range map[string]struct {
		recorded string
		want     string
	}{
		"same":                     {key + "\t1.12\tcreate, children (sent behind it), delete\t2 earlier\n", ""},
		"moved_with_an_entry":      {key + "\t1.2\tcreate, children (sent behind it), delete\t1 earlier\n", ""},
		"moved_without_an_entry":   {key + "\t1.15\tcreate, children (sent behind it), delete\t2 earlier\n", "was 1.15"},
		"floor_moved_with_entry":   {key + "\t1.3\tcreate, delete\t0 earlier\n", ""},
		"floor_moved_without":      {key + "\t1.2\tcreate, delete\t1 earlier\n", "was 1.2"},
		"entry_deleted":            {key + "\t1.12\tcreate, children (sent behind it), delete\t3 earlier\n", "earlier"},
		"bar_deleted":              {"no-such\tloopback\tp50\twire\t1\tcreate\t0 earlier\n", "no-such"},
		"line_without_all_columns": {"uncontended\n", "columns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(bench.Silent(c.recorded, bench.Bars()), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The report names the bars that have moved.
func TestReport_names_moved_bars(t *testing.T) {
	t.Parallel()
	all := map[string][]bench.Turn{bench.Wire: turns(100), bench.Docent: turns(110)}
	s := scenarioNamed(t, "uncontended")
	r := &bench.Report{Bars: 1}
	r.Add("here", bench.Summarize(s, bench.NewSetting("standalone"), all, nil))
	r.Add("there", bench.Summarize(s, bench.NewSetting("standalone"), all, nil))
	text := r.Markdown()
	const want = "- uncontended acquire and release: p50 ≤ 1.12 × wire; was p50 ≤ 1.30 × wire (create, delete) until dff21fc9^: "
	if strings.Count(text, want) != 1 {
		t.Errorf("the report doesn't say once %q:\n%s", want, text)
	}
}

func TestBars_against_docent_before(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  bench.Turn
		want string
	}{
		"half":              {bench.Turn{Ops: 4, Elapsed: 400, Samples: []int64{100}, Mallocs: 4, CPU: 264}, "met met"},
		"more":              {bench.Turn{Ops: 4, Elapsed: 400, Samples: []int64{100}, Mallocs: 5, CPU: 280}, "missed missed"},
		"no processor time": {bench.Turn{Ops: 4, Elapsed: 400, Samples: []int64{100}, Mallocs: 4}, "met not judged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			earlier := []bench.Turn{{Ops: 4, Elapsed: 400, Samples: []int64{100}, Mallocs: 8, CPU: 400}}
			var verdicts []string
			for _, b := range bench.Summarize(scenarioNamed(t, "uncontended"), bench.NewSetting("standalone"),
				map[string][]bench.Turn{bench.Before: earlier, bench.Docent: {c.own}}, nil).Bars {
				if !strings.Contains(b.Bar, bench.Before) {
					continue
				}
				verdict := map[bool]string{true: "met", false: "missed"}[b.Met]
				if !b.Judged {
					verdict = "not judged"
				}
				verdicts = append(verdicts, verdict)
			}
			if got := strings.Join(verdicts, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
