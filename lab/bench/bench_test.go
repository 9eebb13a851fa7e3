package main_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	bench "github.com/docent-go/docent/lab/bench"
	"github.com/docent-go/docent/lab/peers"
)

// Everything but the other processes: all scenarios, on the embedded server, by the
// contenders that are written in Go, on goroutines.
func TestRun_has_every_scenario(t *testing.T) {
	t.Parallel()
	b := bench.Smoke(2, bench.Scenarios(), []*bench.Peer{
		bench.InProcess(t.Context(), bench.Wire), bench.InProcess(t.Context(), bench.Docent),
		bench.InProcess(t.Context(), bench.Gozk), bench.Missing(bench.Curator, peers.ErrMissing),
	}, bench.Embedded())
	r := must.Get(b.Run(t.Context()))(t)
	if err := r.Failures(); err != nil {
		t.Error(err)
	}
	results := r.Settings[0].Scenarios
	for i, s := range bench.Scenarios() {
		got := results[i]
		if got.Name != s.Name() {
			t.Fatalf("scenario %d is %s, want %s", i, got.Name, s.Name())
		}
		for _, name := range []string{bench.Wire, bench.Docent, bench.Gozk} {
			f := got.Of(name)
			if s.Kinds()[name] == "" {
				if f.Contender != "" {
					t.Errorf("%s: %s takes part", got.Name, name)
				}
				continue
			}
			if f.P50 <= 0 || f.Rate <= 0 || len(f.RoundsP50) != 2 || f.OfDocent <= 0 {
				t.Errorf("%s: %s: %+v", got.Name, name, f)
			}
			if s.Kinds()[bench.Wire] != "" && f.OfFloor <= 0 {
				t.Errorf("%s: %s has no ratio to the floor", got.Name, name)
			}
			// Most acquires of a Local send nothing, concurrent additions are one write, and a cache reads
			// several znodes by one request.
			shared := name == bench.Docent && (strings.HasSuffix(got.Name, "-local") || got.Name == "counter-16" || got.Name == "memory-cache")
			if !strings.HasPrefix(got.Name, "reentry") && !shared && f.Requests < 1 || shared && f.Requests <= 0 {
				t.Errorf("%s: %s has made %v requests an operation", got.Name, name, f.Requests)
			}
		}
		for _, bar := range got.Bars {
			if strings.Contains(bar.Bar, bench.Curator) && bar.Judged {
				t.Errorf("%s: a bar beside Curator, which is missing, is judged: %+v", got.Name, bar)
			}
		}
	}
	text := r.Markdown()
	for _, want := range []string{"Curator: SKIPPED, NOT MEASURED: not installed", "A quick run", "not judged", "`uncontended`"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report doesn't say %q:\n%s", want, text)
		}
	}
	data := must.Get(r.JSON())(t)
	var again bench.Report
	if err := json.Unmarshal(data, &again); err != nil || len(again.Settings[0].Scenarios) != len(results) {
		t.Errorf("the JSON is not the report: %v", err)
	}
}

func TestAnAddedRoundTripIsPaidByEachRequest(t *testing.T) {
	t.Parallel()
	const rtt = 10 * time.Millisecond
	s := bench.Embedded()
	s.SetRTT(rtt)
	b := bench.Smoke(1, bench.Scenarios("refused"), []*bench.Peer{bench.InProcess(t.Context(), bench.Wire)}, s)
	r := must.Get(b.Run(t.Context()))(t)
	got := time.Duration(r.Settings[0].Scenarios[0].Of(bench.Wire).P50)
	// A signal may cut the proxy's wait short.
	if got < rtt*9/10 {
		t.Errorf("a request takes %v, with %v of round trip added", got, rtt)
	}
}

// The drivers that are written in other languages know all loads.
func TestTheDriversOfOtherLanguagesPlayEveryLoad(t *testing.T) {
	t.Parallel()
	if os.Getenv("ZK_TEST") == "none" {
		t.Skip("SKIPPED, NOT TESTED: ZK_TEST=none")
	}
	for _, name := range []string{bench.Curator, bench.Kazoo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			located := bench.Located(t.Context(), t.TempDir(), name)
			if err := located[0].Skip(); err != nil {
				if !errors.Is(err, peers.ErrMissing) || os.Getenv("ZK_TEST") == "required" {
					t.Fatal(err)
				}
				t.Skipf("SKIPPED, NOT TESTED: %v", err)
			}
			played := bench.Differing(name)
			r := must.Get(bench.Smoke(1, played, located, bench.Embedded()).Run(t.Context()))(t)
			if err := r.Failures(); err != nil {
				t.Error(err)
			}
			for i, s := range played {
				f := r.Settings[0].Scenarios[i].Of(name)
				if s.Kinds()[name] != "" && (f.P50 <= 0 || f.Rate <= 0) {
					t.Errorf("%s: %+v", s.Name(), f)
				}
			}
		})
	}
}

func TestAContenderThatDiesIsReportedWithItsReason(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	err = bench.Start(t.Context(), self, "-no-such-flag")
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got %v, want what it wrote to its standard error", err)
	}
}
