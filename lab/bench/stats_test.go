package main_test

import (
	"errors"
	"strings"
	"testing"

	bench "github.com/docent-go/docent/lab/bench"
)

func turns(p50s ...int64) []bench.Turn {
	var all []bench.Turn
	for _, p := range p50s {
		all = append(all, bench.Turn{
			Ops: 4, Elapsed: 4 * p, Samples: []int64{p - 10, p, p, p + 1000}, Mallocs: 8, Requests: 12, Grown: 4 << 13, Peak: 1 << 21,
		})
	}
	return all
}

// costly is turns with processor time.
func costly(p50 int64) []bench.Turn {
	all := turns(p50)
	all[0].CPU = 400
	return all
}

func scenarioNamed(t *testing.T, name string) bench.Scenario {
	t.Helper()
	for _, s := range bench.Scenarios() {
		if s.Name() == name {
			return s
		}
	}
	t.Fatalf("no scenario %s", name)
	return bench.Scenario{}
}

func TestFiguresAreMediansOfRoundsAndRatiosAreOfThem(t *testing.T) {
	t.Parallel()
	got := bench.Summarize(scenarioNamed(t, "uncontended"), bench.NewSetting("standalone"), map[string][]bench.Turn{
		bench.Wire: turns(100, 9000, 100), bench.Docent: turns(125, 130, 8000), bench.Curator: turns(200, 150, 260),
	}, nil)
	f := got.Of(bench.Docent)
	if f.P50 != 130 || f.OfFloor != 1.3 || f.OfDocent != 1 || f.Samples != 12 || f.P99 < 8000 {
		t.Errorf("docent: %+v", f)
	}
	if f.Rate != 1e9/130.0 || f.Allocs != 2 || f.Requests != 3 || f.KiBEach != 8 || f.PeakMiB != 2 {
		t.Errorf("docent: %+v", f)
	}
	if c := got.Of(bench.Curator); c.OfFloor != 2 || c.OfDocent != 200/130.0 {
		t.Errorf("Curator: %+v", c)
	}
	want := map[string]string{
		"p50 ≤ 1.12 × wire": "missed", "≥ 1.00 × Curator's throughput": "met",
		"≥ 1.00 × go-zookeeper's throughput": "not judged", "≥ 1.00 × kazoo's throughput": "not judged",
		"allocations ≤ 0.50 × docent-before": "not judged", "processor time ≤ 0.67 × docent-before": "not judged",
	}
	for _, b := range got.Bars {
		verdict := map[bool]string{true: "met", false: "missed"}[b.Met]
		if !b.Judged {
			verdict = "not judged"
		}
		if want[b.Bar] != verdict {
			t.Errorf("%s: %s (%v), want %s", b.Bar, verdict, b.Measured, want[b.Bar])
		}
		delete(want, b.Bar)
	}
	if len(want) != 0 {
		t.Errorf("no verdict on %v", want)
	}
}

func TestBarsAreMissedByWhatIsTooSlowOrTooLarge(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]map[string][]bench.Turn{
		"uncontended":       {bench.Wire: turns(100), bench.Docent: costly(131), bench.Curator: turns(130), bench.Gozk: turns(130), bench.Kazoo: turns(130), bench.Before: costly(130)},
		"reentry-goroutine": {bench.Docent: turns(1310), bench.Curator: turns(1300)},
		"path-16":           {bench.Docent: turns(100), bench.Curator: turns(129)},
		"memory-waiters":    {bench.Docent: {{Ops: 1, Elapsed: 1, Samples: []int64{1}, Grown: 17 << 10, Peak: 1}}},
	} {
		got := bench.Summarize(scenarioNamed(t, name), bench.NewSetting("standalone"), slow, nil)
		if len(got.Bars) == 0 {
			t.Errorf("%s has no bars", name)
		}
		for _, b := range got.Bars {
			if !b.Judged || b.Met {
				t.Errorf("%s: %+v, want it missed", name, b)
			}
		}
	}
}

func TestBarsAreJudgedWhereTheyBelong(t *testing.T) {
	t.Parallel()
	far := bench.NewSetting("standalone")
	far.SetRTT(1)
	all := map[string][]bench.Turn{bench.Wire: turns(100), bench.Docent: turns(110)}
	for _, c := range []struct {
		in   bench.Setting
		want string
	}{
		{bench.NewSetting("standalone"), "p50 ≤ 1.12 × wire true"},
		{far, "p50 ≤ 1.05 × wire false"},
		{bench.NewSetting("ensemble"), ""},
	} {
		var judged []string
		for _, b := range bench.Summarize(scenarioNamed(t, "uncontended"), c.in, all, nil).Bars {
			if b.Judged {
				judged = append(judged, b.Bar+" "+map[bool]string{true: "true", false: "false"}[b.Met])
			}
		}
		if got := strings.Join(judged, ", "); got != c.want {
			t.Errorf("%v: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestAFailureIsInTheTableAndMakesTheRunFail(t *testing.T) {
	t.Parallel()
	s := scenarioNamed(t, "uncontended")
	one := bench.Summarize(s, bench.NewSetting("standalone"), map[string][]bench.Turn{
		bench.Wire: turns(100), bench.Docent: turns(120), bench.Curator: nil,
	}, map[string]error{bench.Curator: errors.New("out of\nmemory")})
	r := &bench.Report{}
	r.Add("here", one)
	if text := r.Markdown(); !strings.Contains(text, "| Curator | **FAILED**: out of memory |") {
		t.Errorf("the table hides a failure:\n%s", text)
	}
	if err := r.Failures(); err == nil || !strings.Contains(err.Error(), "here: uncontended: Curator: out of") {
		t.Errorf("the failures are %v", err)
	}
}

// benchstat reads a line for each round: the name, a number, and pairs of a value and its unit.
func TestRounds(t *testing.T) {
	t.Parallel()
	r := new(bench.Report)
	all := map[string][]bench.Turn{bench.Docent: turns(100, 200), bench.Gozk: turns(300)}
	r.Add("ensemble, 2ms of round trip added", bench.Summarize(scenarioNamed(t, "uncontended"), bench.NewSetting("ensemble"), all, nil))
	const name = "BenchmarkScenario/uncontended/ensemble-2ms-of-round-trip-added"
	want := name + " 1 100 ns/op 3.000 requests/op 2.0 allocs/op\n" + name + " 1 200 ns/op 3.000 requests/op 2.0 allocs/op\n"
	if got := r.RoundLines(bench.Docent); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
