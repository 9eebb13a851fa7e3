package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/lab/bench/contender"
)

// alone is one server, on the loopback.
var alone = setting{mode: standalone}

// turnsOf returns turns with these medians.
func turnsOf(p50s ...time.Duration) (all []turn) {
	for _, p := range p50s {
		all = append(all, turn{
			Answer: contender.Answer{Ops: 4, Elapsed: 4 * p, Samples: []time.Duration{p - 10, p, p, p + 1000}, Mallocs: 8},
			counts: counts{requests: 12}, grown: 4 << 13, peak: 1 << 21,
		})
	}
	return all
}

// costly is a turn that has used so much of the processor.
func costly(p50, cpu time.Duration, mallocs int64) []turn {
	all := turnsOf(p50)
	all[0].cpu, all[0].Mallocs = cpu, mallocs
	return all
}

func TestFiguresAreMediansOfRoundsAndRatiosAreOfThem(t *testing.T) {
	t.Parallel()
	got := summarize(scenarioNamed(t, "uncontended"), alone, played(map[string][]turn{
		wire: turnsOf(100, 9000, 100), docent: turnsOf(125, 130, 8000), curator: turnsOf(200, 150, 260),
	}))
	f := of(got, docent)
	if f.P50 != 130 || f.OfFloor != 1.3 || f.OfDocent != 1 || f.Samples != 12 || f.P99 < 8000 {
		t.Errorf("docent: %+v", f)
	}
	if f.Rate != 1e9/130.0 || f.Allocs != 2 || f.Requests != 3 || f.KiBEach != 8 || f.PeakMiB != 2 {
		t.Errorf("docent: %+v", f)
	}
	if c := of(got, curator); c.OfFloor != 2 || c.OfDocent != 200/130.0 {
		t.Errorf("Curator: %+v", c)
	}
	want := map[string]string{
		"p50 ≤ 1.12 × wire": "**missed**", "≥ 1.00 × Curator's throughput": "met",
		"≥ 1.00 × go-zookeeper's throughput": "not judged", "≥ 1.00 × kazoo's throughput": "not judged",
		"allocations ≤ 0.50 × docent-before": "not judged", "processor time ≤ 0.67 × docent-before": "not judged",
	}
	for _, b := range got.Bars {
		if verdict := b.word(); want[b.Bar] != verdict {
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
	for name, slow := range map[string]map[string][]turn{
		"uncontended": {
			wire: turnsOf(100), docent: costly(131, 400, 8), curator: turnsOf(130), gozk: turnsOf(130), kazoo: turnsOf(130),
			before: costly(130, 400, 8),
		},
		"reentry-goroutine": {docent: turnsOf(1310), curator: turnsOf(1300)},
		"path-16":           {docent: turnsOf(100), curator: turnsOf(129)},
		"memory-waiters":    {docent: {{Answer: contender.Answer{Ops: 1, Elapsed: 1, Samples: []time.Duration{1}}, grown: 17 << 10, peak: 1}}},
	} {
		got := summarize(scenarioNamed(t, name), alone, played(slow))
		if len(got.Bars) == 0 {
			t.Errorf("%s has no bars", name)
		}
		for _, b := range got.Bars {
			if b.word() != "**missed**" {
				t.Errorf("%s: %+v, want it missed", name, b)
			}
		}
	}
}

func TestBars_against_docent_before(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  []turn
		want string
	}{
		"half":              {costly(100, 264, 4), "met met"},
		"more":              {costly(100, 280, 5), "**missed** **missed**"},
		"no processor time": {costly(100, 0, 4), "met not judged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both := map[string][]turn{before: costly(100, 400, 8), docent: c.own}
			var verdicts []string
			for _, b := range summarize(scenarioNamed(t, "uncontended"), alone, played(both)).Bars {
				if strings.Contains(b.Bar, before) {
					verdicts = append(verdicts, b.word())
				}
			}
			if got := strings.Join(verdicts, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestBarsAreJudgedWhereTheyBelong(t *testing.T) {
	t.Parallel()
	all := map[string][]turn{wire: turnsOf(100), docent: turnsOf(110)}
	for _, c := range []struct {
		in   setting
		want string
	}{
		{alone, "p50 ≤ 1.12 × wire met"},
		{setting{mode: standalone, rtt: 1}, "p50 ≤ 1.05 × wire **missed**"},
		{setting{mode: ensemble}, ""},
	} {
		var judged []string
		for _, b := range summarize(scenarioNamed(t, "uncontended"), c.in, played(all)).Bars {
			if b.Judged {
				judged = append(judged, b.Bar+" "+b.word())
			}
		}
		if got := strings.Join(judged, ", "); got != c.want {
			t.Errorf("%v: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestAFailureIsInTheTableAndMakesTheRunFail(t *testing.T) {
	t.Parallel()
	in := played(map[string][]turn{wire: turnsOf(100), docent: turnsOf(120)})
	in = append(in, &entrant{peer: &peer{name: curator}, err: errors.New("out of\nmemory")})
	r := reportOf("here", summarize(scenarioNamed(t, "uncontended"), alone, in))
	if text := markdownOf(r); !strings.Contains(text, "| Curator | **FAILED**: out of memory |") {
		t.Errorf("the table hides a failure:\n%s", text)
	}
	if err := r.failures(); err == nil || !strings.Contains(err.Error(), "here: uncontended: Curator: out of") {
		t.Errorf("the failures are %v", err)
	}
}

// benchstat reads a line for each round: the name, a number, and pairs of a value and its unit.
func TestRounds(t *testing.T) {
	t.Parallel()
	all := map[string][]turn{docent: turnsOf(100, 200), gozk: turnsOf(300)}
	r := reportOf("ensemble, 2ms of round trip added", summarize(scenarioNamed(t, "uncontended"), setting{mode: ensemble}, played(all)))
	const name = "BenchmarkScenario/uncontended/ensemble-2ms-of-round-trip-added"
	want := name + " 1 100 ns/op 3.000 requests/op 2.0 allocs/op\n" + name + " 1 200 ns/op 3.000 requests/op 2.0 allocs/op\n"
	if got := r.rounds(docent); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// reportOf returns a report of one scenario.
func reportOf(setting string, s scenarioResult) *report {
	return &report{Settings: []settingResult{{Setting: setting, Scenarios: []scenarioResult{s}}}}
}
