package soak_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
)

// A report writes what a soak has measured, while it runs: a line for each sample to soak.csv, and the
// result so far to report.md.
type report struct {
	t      *testing.T
	dir    string
	length time.Duration // asked for
	begun  time.Time
	csv    *os.File
	series *series
	count  int    // of all samples
	last   sample // the latest
	ended  string // how; "" while it runs
}

const head = "seconds,goroutines,heap KiB,descriptors,operations,faults\n"

func newReport(t *testing.T, length time.Duration) *report {
	t.Helper()
	dir := filepath.Join("..", "..", ".cache", "soak")
	must.OK(t, os.MkdirAll(dir, 0o755))
	csv := must.Get(os.Create(filepath.Join(dir, "soak.csv")))(t)
	must.Get(csv.WriteString(head))(t)
	return &report{t: t, dir: dir, length: length, begun: time.Now(), csv: csv, series: newSeries()}
}

// watch takes a sample each second until ctx ends.
func (r *report) watch(ctx context.Context, operations, faults *atomic.Int64) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s := take(r.begun)
			s.operations, s.faults = operations.Load(), faults.Load()
			r.add(s)
		case <-ctx.Done():
			return
		}
	}
}

func (r *report) add(s sample) {
	r.series.add(s)
	r.count++
	r.last = s
	_, err := fmt.Fprintf(r.csv, "%.1f,%d,%d,%d,%d,%d\n", s.at.Seconds(), s.goroutines, s.heap>>10, s.descriptors, s.operations, s.faults)
	if err != nil {
		r.t.Errorf("soak.csv: %v", err)
	}
	if r.count%60 == 0 {
		r.write()
	}
}

// close writes the result.
func (r *report) close(interrupted bool) {
	r.ended = "as planned"
	switch {
	case interrupted:
		r.ended = "by an interrupt"
	case r.t.Failed():
		r.ended = "by a fault that failed"
	}
	r.write()
	if err := r.csv.Close(); err != nil {
		r.t.Errorf("soak.csv: %v", err)
	}
}

// write replaces report.md as a whole, so that a reader never finds half of it.
func (r *report) write() {
	file := filepath.Join(r.dir, "report.md")
	err := os.WriteFile(file+".next", []byte(r.text()), 0o644)
	if err == nil {
		err = os.Rename(file+".next", file)
	}
	if err != nil {
		r.t.Errorf("report.md: %v", err)
	}
}

// text returns the result so far.
func (r *report) text() string {
	var b strings.Builder
	state := "ended " + r.ended
	if r.ended == "" {
		state = "still running"
	}
	fmt.Fprintf(&b, "# Soak\n\nBegun %s, %v of %v, %s. %s, %s/%s, %d processors.\n\n",
		r.begun.UTC().Format(time.RFC3339), r.last.at.Round(time.Second), r.length, state, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintf(&b, "%d operations succeeded under %d faults.\n", r.last.operations, r.last.faults)
	if r.count < fewest {
		return b.String()
	}
	b.WriteString("\n| median of | second third | last third | |\n|---|--:|--:|---|\n")
	for _, t := range trends(r.series.kept) {
		verdict := "no growth"
		if t.grew() {
			verdict = "GREW"
		}
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | %s |\n", t.name, t.earlier, t.later, verdict)
	}
	return b.String()
}
