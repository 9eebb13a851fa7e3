package main

import (
	"context"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/examples/harness"
)

func TestEachRunIsMadeOnce(t *testing.T) {
	t.Parallel()
	out := harness.RunInBubble(t, run)
	want := regexp.MustCompile(`^run 1: by host \d\nrun 2: by host \d\nrun 3: by host \d\nrun 4: by host \d\nrun 5: by host \d\n$`)
	if !want.MatchString(out) {
		t.Errorf("printed:\n%s\nwant runs 1 to 5", out)
	}
}

// A host that comes late finds the lock free and the record written. A host that comes in between
// finds the lock held. Neither runs the job.
func TestALateHostDoesNotRunTheJobAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zk, err := harness.Embedded()
		if err != nil {
			t.Fatal(err)
		}
		defer zk.Embedded.Close()
		var made atomic.Int32
		release := make(chan struct{})
		job := func(context.Context, int64) error {
			made.Add(1)
			<-release
			return nil
		}
		var hosts []*host
		for range 2 {
			h, err := newHost(t.Context(), zk, 0, job)
			if err != nil {
				t.Fatal(err)
			}
			defer h.client.Close()
			hosts = append(hosts, h)
		}
		done := make(chan error)
		go func() { done <- hosts[0].tick(t.Context(), 7) }()
		synctest.Wait()
		if err := hosts[1].tick(t.Context(), 7); err != nil {
			t.Error("while the job runs:", err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := hosts[1].tick(t.Context(), 7); err != nil {
			t.Error("after the job:", err)
		}
		if got := made.Load(); got != 1 {
			t.Errorf("the job ran %d times, want once", got)
		}
		if err := hosts[1].tick(t.Context(), 8); err != nil || made.Load() != 2 {
			t.Errorf("next interval: %v, %d runs; want 2", err, made.Load())
		}
	})
}
