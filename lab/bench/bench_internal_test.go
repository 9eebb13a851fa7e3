package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/peers"
)

// Everything but the other processes: all scenarios, on the embedded server, by the
// contenders that are written in Go, on goroutines.
func TestRun_has_every_scenario(t *testing.T) {
	t.Parallel()
	b := smoke(2, scenarios(), []*peer{
		inProcess(t.Context(), wire), inProcess(t.Context(), docent),
		inProcess(t.Context(), gozk), {name: curator, skip: peers.ErrMissing},
	}, onServer)
	r := must.Get(b.run(t.Context()))(t)
	if err := r.failures(); err != nil {
		t.Error(err)
	}
	results := r.Settings[0].Scenarios
	for i, s := range scenarios() {
		got := results[i]
		if got.Name != s.name {
			t.Fatalf("scenario %d is %s, want %s", i, got.Name, s.name)
		}
		for _, name := range []string{wire, docent, gozk} {
			f := of(got, name)
			if s.kinds[name] == "" {
				if f.Contender != "" {
					t.Errorf("%s: %s takes part", got.Name, name)
				}
				continue
			}
			if f.P50 <= 0 || f.Rate <= 0 || len(f.RoundsP50) != 2 || f.OfDocent <= 0 {
				t.Errorf("%s: %s: %+v", got.Name, name, f)
			}
			if s.kinds[wire] != "" && f.OfFloor <= 0 {
				t.Errorf("%s: %s has no ratio to the floor", got.Name, name)
			}
			// Most acquires of a Local send nothing, concurrent additions are one write, and a cache reads
			// several znodes by one request.
			shared := name == docent && (strings.HasSuffix(got.Name, "-local") || got.Name == "counter-16" || got.Name == "memory-cache")
			if !strings.HasPrefix(got.Name, "reentry") && !shared && f.Requests < 1 || shared && f.Requests <= 0 {
				t.Errorf("%s: %s has made %v requests an operation", got.Name, name, f.Requests)
			}
		}
		for _, bar := range got.Bars {
			if strings.Contains(bar.Bar, curator) && bar.Judged {
				t.Errorf("%s: a bar beside Curator, which is missing, is judged: %+v", got.Name, bar)
			}
		}
	}
	text := markdownOf(r)
	for _, want := range []string{"Curator: SKIPPED, NOT MEASURED: not installed", "A quick run", "not judged", "`uncontended`"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report doesn't say %q:\n%s", want, text)
		}
	}
	data := must.Get(r.json())(t)
	var again report
	if err := json.Unmarshal(data, &again); err != nil || len(again.Settings[0].Scenarios) != len(results) {
		t.Errorf("the JSON is not the report: %v", err)
	}
}

func TestAnAddedRoundTripIsPaidByEachRequest(t *testing.T) {
	t.Parallel()
	const rtt = 10 * time.Millisecond
	b := smoke(1, []scenario{scenarioNamed(t, "trylock-refused")}, []*peer{inProcess(t.Context(), wire)}, setting{mode: embedded, rtt: rtt})
	r := must.Get(b.run(t.Context()))(t)
	got := time.Duration(of(r.Settings[0].Scenarios[0], wire).P50)
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
	for _, name := range []string{curator, kazoo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			located := slices.DeleteFunc(locatePeers(t.Context(), t.TempDir(), "", ""), func(p *peer) bool { return p.name != name })
			located[0].warm = 0
			if err := located[0].skip; err != nil {
				if !errors.Is(err, peers.ErrMissing) || os.Getenv("ZK_TEST") == "required" {
					t.Fatal(err)
				}
				t.Skipf("SKIPPED, NOT TESTED: %v", err)
			}
			played := differing(name)
			r := must.Get(smoke(1, played, located, onServer).run(t.Context()))(t)
			if err := r.failures(); err != nil {
				t.Error(err)
			}
			for i, s := range played {
				f := of(r.Settings[0].Scenarios[i], name)
				if s.kinds[name] != "" && (f.P50 <= 0 || f.Rate <= 0) {
					t.Errorf("%s: %+v", s.name, f)
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
	_, err = start(t.Context(), []string{self, "-no-such-flag"})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got %v, want what it wrote to its standard error", err)
	}
}
