package soak_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
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

// A trend is what became of a quantity: its medians in the second and in the last third of the samples.
// The first third is the warm-up.
type trend struct {
	quantity
	earlier, later float64
}

// trends needs fewest samples.
func trends(samples []sample) []trend {
	third := len(samples) / 3
	var all []trend
	for _, q := range quantities() {
		all = append(all, trend{q, median(samples[third:2*third], q.of), median(samples[2*third:], q.of)})
	}
	return all
}

// grew reports whether the growth is more than noise.
func (t trend) grew() bool { return t.later > t.earlier*(1+t.share)+t.slack }

// grown returns what grew.
func grown(samples []sample) []string {
	var found []string
	for _, t := range trends(samples) {
		if t.grew() {
			found = append(found, fmt.Sprintf("%s grew from %.0f to %.0f", t.name, t.earlier, t.later))
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

// A series keeps samples that are equally far apart, and never more than its capacity: when it is full,
// it keeps every other one, and takes every other one from then on.
type series struct {
	kept  []sample
	every int // one in so many is kept
	seen  int
}

func newSeries() *series { return &series{kept: make([]sample, 0, 4096), every: 1} }

func (s *series) add(one sample) {
	s.seen++
	if s.seen%s.every != 0 {
		return
	}
	if len(s.kept) == cap(s.kept) {
		half := s.kept[:0]
		for i := 1; i < cap(s.kept); i += 2 {
			half = append(half, s.kept[i])
		}
		s.kept, s.every = half, 2*s.every
		if s.seen%s.every != 0 {
			return
		}
	}
	s.kept = append(s.kept, one)
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

// A long soak keeps no more samples than a short one, and they are equally far apart.
func TestSeriesIsBounded(t *testing.T) {
	s := newSeries()
	capacity := cap(s.kept)
	for second := 1; second <= 72*60*60; second++ {
		s.add(sample{at: time.Duration(second) * time.Second})
		if last := s.kept[len(s.kept)-1]; second-int(last.at/time.Second) >= s.every {
			t.Fatalf("after %d s the last sample is of %v, one in %d is kept", second, last.at, s.every)
		}
	}
	if len(s.kept) < capacity/2 || cap(s.kept) != capacity {
		t.Errorf("%d samples of %d are kept", len(s.kept), cap(s.kept))
	}
	for i, one := range s.kept {
		if want := time.Duration((i+1)*s.every) * time.Second; one.at != want {
			t.Fatalf("sample %d is of %v, want %v", i, one.at, want)
		}
	}
}
