package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
)

// TestSchedule is shown by Read, Scan and a Live alike, with its last runs: before the first one, at work, after the
// end, and when its host has died in the middle.
func TestSchedule(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		observer, host := e.client(t), e.client(t)
		live := follow(t, observer, "/")
		s := must.Get(schedule.New(host, "/jobs/nightly"))(t)
		shows := func(want ...string) {
			t.Helper()
			settle()
			var found []string
			for _, of := range []inspect.Snapshot{mustScan(t, observer, "/", inspect.Limits{}), live.View().Snapshot} {
				found = append(found, runsOf(of.Locks...))
			}
			var read []inspect.Lock
			for _, line := range want {
				path, _, _ := strings.Cut(line, " ")
				read = append(read, mustRead(t, observer, path))
			}
			found = append(found, runsOf(read...))
			for i, by := range []string{"Scan", "Live", "Read"} {
				if found[i] != strings.Join(want, "; ") {
					t.Errorf("%s shows %s, want %s", by, found[i], strings.Join(want, "; "))
				}
			}
		}
		shows()
		for n, state := range []string{"done", "lost"} {
			begun, end := make(chan struct{}), make(chan struct{})
			ended := make(chan error, 1)
			go func() {
				_, err := s.Run(t.Context(), time.Unix(int64(n), 0), func(context.Context, *lease.Lease) error {
					close(begun)
					<-end
					return nil
				})
				ended <- err
			}()
			<-begun
			former := strings.Repeat("done ", n)
			shows("/jobs/nightly schedule held: " + former + "running")
			if state == "lost" {
				must.OK(t, e.server.Expire(host.Session().ID))
			}
			close(end)
			<-ended
			shows("/jobs/nightly schedule free: " + former + state)
		}
		data, _, err := observer.Get(t.Context(), "/jobs/nightly")
		if err != nil {
			t.Fatal(err)
		}
		must.Get(observer.Set(t.Context(), "/jobs/nightly", []byte("theirs"), framework.AnyVersion))(t)
		shows("/jobs/nightly schedule free: unknown")
		must.Get(observer.Create(t.Context(), "/jobs/nightly/lock", nil, framework.Ephemeral()))(t)
		shows("/jobs/nightly schedule free: unknown", "/jobs/nightly/lock exclusive held: ")
		must.Get(observer.Set(t.Context(), "/jobs/nightly", data, framework.AnyVersion))(t)
		shows("/jobs/nightly schedule held: done lost")
	})
}

// runsOf describes the locks' holders and last runs.
func runsOf(locks ...inspect.Lock) string {
	var all []string
	for _, l := range locks {
		if l.Kind == "" {
			continue
		}
		holds := "free"
		if len(l.Holders()) > 0 {
			holds = "held"
		}
		var states []string
		for _, r := range l.Runs {
			states = append(states, string(r.State))
		}
		if l.Unknown {
			states = []string{"unknown"}
		}
		all = append(all, fmt.Sprintf("%s %s %s: %s", l.Path, l.Kind, holds, strings.Join(states, " ")))
	}
	return strings.Join(all, "; ")
}
