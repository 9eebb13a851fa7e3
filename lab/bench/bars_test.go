package main_test

import (
	"strings"
	"testing"

	bench "github.com/docent-go/docent/lab/bench"
)

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
