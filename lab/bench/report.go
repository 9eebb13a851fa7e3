package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// A report is everything that a run has shown.
type report struct {
	Date     string            `json:"date"` // UTC
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	Rounds   int               `json:"rounds"`
	Quick    bool              `json:"quick"`
	Skipped  []string          `json:"skipped,omitempty"`
	Settings []settingResult   `json:"settings"`
}

type settingResult struct {
	Setting   string           `json:"setting"`
	RoundTrip int64            `json:"roundTrip"` // nanoseconds, median of a small read
	Scenarios []scenarioResult `json:"scenarios"`
}

type scenarioResult struct {
	Name       string    `json:"name"`
	Title      string    `json:"title"`
	Floor      string    `json:"floor,omitempty"`
	Pipelined  string    `json:"pipelined,omitempty"`
	Lacks      string    `json:"lacks,omitempty"`
	ByRate     bool      `json:"byRate"`
	Weighed    bool      `json:"weighed"`
	Contenders []figures `json:"contenders"`
	Bars       []verdict `json:"bars,omitempty"`
}

// The figures of a contender are medians of the rounds' medians; P99 is of all samples.
type figures struct {
	Contender  string    `json:"contender"`
	Error      string    `json:"error,omitempty"` // instead of figures
	P50        float64   `json:"p50"`             // nanoseconds
	P99        float64   `json:"p99"`
	Rate       float64   `json:"rate"`     // operations a second
	OfFloor    float64   `json:"ofFloor"`  // cost, floor = 1; 0 is none
	OfDocent   float64   `json:"ofDocent"` // cost, docent = 1
	Requests   float64   `json:"requests"` // an operation, as the servers counted them
	Allocs     float64   `json:"allocs"`   // an operation; of Go contenders
	CPU        float64   `json:"cpu"`      // nanoseconds an operation, of the contender's process; 0 is not known
	PeakMiB    float64   `json:"peakMiB"`  // the most of all rounds
	KiBEach    float64   `json:"kibEach"`  // by which each waiter or held lock made the process grow
	Samples    int       `json:"samples"`
	RoundsP50  []float64 `json:"roundsP50"`
	RoundsRate []float64 `json:"roundsRate"`

	RoundsRequests []float64 `json:"roundsRequests"`
	RoundsAllocs   []float64 `json:"roundsAllocs"`
}

// cost is what ratios are of, in nanoseconds: one operation of a worker, or where many
// work at once, the time that passes for each.
func (f figures) cost(byRate bool) float64 {
	if byRate {
		return 1e9 / f.Rate
	}
	return f.P50
}

func (r *report) json() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "\t")
	return append(data, '\n'), err
}

// rounds returns a contender's rounds in the format of Go's benchmarks, a line for each round.
func (r *report) rounds(contender string) string {
	var text strings.Builder
	for _, s := range r.Settings {
		setting := strings.NewReplacer(", ", "-", " ", "-").Replace(s.Setting)
		for _, sc := range s.Scenarios {
			for _, f := range sc.Contenders {
				if f.Contender != contender {
					continue
				}
				for i := range f.RoundsP50 {
					round := figures{P50: f.RoundsP50[i], Rate: f.RoundsRate[i]}
					fmt.Fprintf(&text, "BenchmarkScenario/%s/%s 1 %.0f ns/op %.3f requests/op %.1f allocs/op\n",
						sc.Name, setting, round.cost(sc.ByRate), f.RoundsRequests[i], f.RoundsAllocs[i])
				}
			}
		}
	}
	return text.String()
}

// failures returns an error if a contender has failed: the figures are not whole then.
func (r *report) failures() error {
	var errs []error
	for _, s := range r.Settings {
		for _, sc := range s.Scenarios {
			for _, f := range sc.Contenders {
				if f.Error != "" {
					errs = append(errs, fmt.Errorf("%s: %s: %s: %s", s.Setting, sc.Name, f.Contender, f.Error))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// describeMachine says what the run was on, as far as the system tells.
func describeMachine() string {
	words := fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return words
	}
	for line := range strings.Lines(string(info)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return words + ", " + strings.TrimSpace(model)
		}
	}
	return words
}

// commit returns the commit of the working directory, marked if it has been changed.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "of an unknown commit"
	}
	return strings.TrimSpace(string(out))
}
