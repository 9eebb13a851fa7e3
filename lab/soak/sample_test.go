package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
)

// A sample is what the process uses at one moment.
type sample struct {
	at          time.Duration // since the start
	goroutines  int
	heap        uint64 // bytes that are reachable
	descriptors int    // -1 if the system doesn't tell
	operations  int64
	faults      int64
}

// take measures the process.
func take(begun time.Time) sample {
	s := sample{goroutines: runtime.NumGoroutine(), descriptors: -1}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.descriptors = len(open)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.heap, s.at = m.HeapAlloc, time.Since(begun)
	return s
}

// A quantity is what must not grow, with the growth that noise explains.
type quantity struct {
	name  string
	of    func(sample) float64
	slack float64 // absolute
	share float64 // of the earlier value
}

// quantities returns what is judged. A leak of one goroutine, one descriptor or a few KiB per
// fault exceeds the slack within some minutes.
func quantities() []quantity {
	return []quantity{
		{"goroutines", func(s sample) float64 { return float64(s.goroutines) }, 8, 0.05},
		{"heap bytes", func(s sample) float64 { return float64(s.heap) }, 1 << 20, 0.10},
		{"file descriptors", func(s sample) float64 { return float64(s.descriptors) }, 6, 0.05},
	}
}

// fewest is how many samples it takes to judge.
const fewest = 12

// grown returns what grew from the second third of the samples to the last one. The first
// third is the warm-up.
func grown(samples []sample) []string {
	third := len(samples) / 3
	var found []string
	for _, q := range quantities() {
		earlier, later := median(samples[third:2*third], q.of), median(samples[2*third:], q.of)
		if later > earlier*(1+q.share)+q.slack {
			found = append(found, fmt.Sprintf("%s grew from %.0f to %.0f", q.name, earlier, later))
		}
	}
	return found
}

func median(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// write writes the samples as comma-separated values.
func write(t *testing.T, samples []sample) {
	t.Helper()
	dir := filepath.Join("..", "..", ".cache", "soak")
	must.OK(t, os.MkdirAll(dir, 0o755))
	var text strings.Builder
	text.WriteString("seconds,goroutines,heap KiB,descriptors,operations,faults\n")
	for _, s := range samples {
		fmt.Fprintf(&text, "%.1f,%d,%d,%d,%d,%d\n", s.at.Seconds(), s.goroutines, s.heap>>10, s.descriptors, s.operations, s.faults)
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "soak.csv"), []byte(text.String()), 0o644))
}

func TestGrown(t *testing.T) {
	flat := make([]sample, 60)
	for i := range flat {
		flat[i] = sample{goroutines: 40 + i%5, heap: 10<<20 + uint64(i%7)<<16, descriptors: 30 + i%3}
	}
	if found := grown(flat); found != nil {
		t.Errorf("flat samples: got %q, want none", found)
	}
	for name, leak := range map[string]func(*sample, int){
		"goroutines":       func(s *sample, i int) { s.goroutines += i },
		"heap bytes":       func(s *sample, i int) { s.heap += uint64(i) << 18 },
		"file descriptors": func(s *sample, i int) { s.descriptors += i },
	} {
		leaky := slices.Clone(flat)
		for i := range leaky {
			leak(&leaky[i], i)
		}
		if found := grown(leaky); len(found) != 1 || !strings.HasPrefix(found[0], name) {
			t.Errorf("leak of %s: got %q, want one finding about it", name, found)
		}
	}
}
