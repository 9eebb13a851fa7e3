package chaos_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	// nextVariable names the directory of the release that TestRollingUpgrade upgrades to, as
	// ZOOKEEPER_HOME would, or is installedRelease. Without it there is no run.
	nextVariable     = "ZOOKEEPER_NEXT"
	installedRelease = "installed"
)

// betweenMembers is how long the ensemble works between the restarts of two members.
const betweenMembers = 3 * time.Second

// TestRollingUpgrade upgrades an ensemble to another release, member by member, and back, while workers
// contend for locks, lead and serve keys. So its members are of two versions for most of the time. The
// workers' history is checked as TestChaos checks it: no two held a lock.
func TestRollingUpgrade(t *testing.T) {
	next := os.Getenv(nextVariable)
	if next == "" {
		t.Skipf("SKIPPED, NOT TESTED: %s is not set: it is where scripts/setup-versions has put another release", nextVariable)
	}
	if !history.Shared {
		t.Skip("this system has no clock that all processes share")
	}
	if next == installedRelease {
		next = ""
	}
	start := time.Now()
	r := newRun(t, 0)
	before := r.versions(t)
	for _, home := range []string{next, os.Getenv("ZOOKEEPER_HOME")} {
		r.move(t, home, r.order(t))
		if is := r.versions(t); len(is) != 1 {
			t.Errorf("members of the versions %v after all were restarted", is)
		} else if home == next && is[0] == before[0] {
			t.Errorf("%s: all members are of version %s, as before", home, is[0])
		} else {
			fmt.Printf("upgrade: all members are of version %s\n", is[0])
		}
	}
	r.finish()
	vacuous(t, r.judge(t, time.Since(start).Round(time.Second)).unmoved())
	if t.Failed() {
		r.saveRecords(t)
	}
}

// versions returns the different versions of the members.
func (r *run) versions(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, s := range r.ensemble.Servers {
		answer, err := s.FourLetter(t.Context(), "srvr")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(answer, "version: ")
		version, _, _ := strings.Cut(rest, "-")
		all = append(all, strings.TrimSpace(version))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// order returns the members, the leader last, as administrators restart them.
func (r *run) order(t *testing.T) []*zktest.Server {
	t.Helper()
	leader, err := r.ensemble.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	others := slices.DeleteFunc(slices.Clone(r.ensemble.Servers), func(s *zktest.Server) bool { return s == leader })
	return append(others, leader)
}

// move restarts the members with the release at home. After each, every kind of lock has to be granted.
func (r *run) move(t *testing.T, home string, members []*zktest.Server) {
	t.Helper()
	for _, s := range members {
		from := history.Monotonic()
		ctx, cancel := context.WithTimeout(t.Context(), repairLimit)
		err := s.Stop(ctx)
		if err == nil {
			err = s.RestartAt(ctx, home)
		}
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		at := history.Monotonic()
		r.note(done{"member restarted with another release", s.Addr(), from, at})
		if !await(t.Context(), repairLimit, func() bool { return r.board.grantedSince(at) }) {
			t.Fatalf("liveness: not every kind of lock was granted within %v after %s came back", repairLimit, s.Addr())
		}
		pause(t.Context(), betweenMembers)
	}
}
