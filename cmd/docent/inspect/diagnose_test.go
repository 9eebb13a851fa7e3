package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1000)
	for name, test := range map[string]struct {
		dir    inspect.Znode
		at     time.Duration   // after now
		longer time.Duration   // a hold that is reported
		want   inspect.Problem // "" for no finding
	}{
		"a lock in use":    {dir("", znode{guid + "lock-0000000001", 1, 5, ""}), time.Hour, 0, ""},
		"held long":        {dir("", znode{guid + "lock-0000000001", 1, 5, ""}), time.Hour, time.Minute, inspect.HeldLong},
		"held not so long": {dir("", znode{guid + "lock-0000000001", 1, 5, ""}), time.Hour, 2 * time.Hour, ""},
		"the counter":      {dir("", znode{guid + "lock-2147000000", 1, 5, ""}), 0, 0, inspect.Counter},
		"a crowd":          {dir("", many(502)...), 0, 0, inspect.Crowd},
		"mixed":            {dir("", znode{name: hexID + "__lock__0000000001"}, znode{name: guid + "lock-0000000002"}), 0, 0, inspect.Mixed},
		"mixed with a semaphore": {
			inspect.Znode{Path: "/l", Children: append(dir("", znode{name: guid + "lock-0000000002"}).Children,
				below("/l/leases", "", znode{name: guid + "lease-0000000001"}))}, 0, 0, inspect.Mixed,
		},
		"clocks":           {dir("", znode{guid + "lock-0000000001", 1, 5, ""}), -time.Minute, 0, inspect.ClocksDiffer},
		"clocks, a little": {dir("", znode{guid + "lock-0000000001", 1, 5, ""}), -time.Second, 0, ""},
		"a stranger": {
			inspect.Znode{Path: "/l", Children: []inspect.Znode{below("/l/leases", "", znode{name: guid + "lease-0000000001"}, znode{name: "x"})}}, 0, 0, inspect.Foreign,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, ok := inspect.Of(test.dir)
			if !ok {
				t.Fatal("no lock")
			}
			s := inspect.Snapshot{Locks: []inspect.Lock{l}, At: now.Add(test.at)}
			found := inspect.Diagnose(s, s, test.longer)
			if test.want == "" && len(found) > 0 || test.want != "" && (len(found) != 1 || found[0].Problem != test.want) {
				t.Errorf("found %+v, want %q", found, test.want)
			}
			for _, f := range found {
				if f.Text == "" || f.Advice == "" || f.Path == "" || f.Severity == "" {
					t.Errorf("incomplete: %+v", f)
				}
			}
		})
	}
}

// many returns n contenders of a mutex.
func many(n int) []znode {
	var all []znode
	for i := range n {
		all = append(all, znode{name: fmt.Sprintf("%slock-%010d", guid, i)})
	}
	return all
}

func TestDiagnose_on_an_ensemble(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		mustCreate(t, c, "/stays/"+guid+"lock-0000000001", "")
		mustCreate(t, c, "/chance/lock-0000000001", "")
		mustCreate(t, c, "/among/padlock-0000000000", "")
		contender(t, c, "/among", "")
		mustCreate(t, c, "/secret", "", hidden())
		asked := contender(t, c, "/asked", metadata(lease.Metadata{Host: "h"}))
		must.OK(t, lock.Revoke(t.Context(), c, asked))
		<-time.After(2 * time.Minute) // virtual
		s := mustScan(t, c, "/", inspect.Limits{})
		var problems []inspect.Problem
		for _, f := range inspect.Diagnose(s, s, 0) {
			problems = append(problems, f.Problem)
		}
		want := []inspect.Problem{inspect.Foreign, inspect.NoSession, inspect.RevokedUnheard, inspect.NoAuth}
		if !slices.Equal(problems, want) {
			t.Errorf("found %v, want %v", problems, want)
		}
	})
}

// TestDiagnose_large_listings: a directory near what clients accept, and one beyond it.
func TestDiagnose_large_listings(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		for path, n := range map[string]int{"/small": 10, "/large": 35, "/huge": 65} { // of 16 KiB each
			mustCreate(t, c, path, "")
			for i := range n {
				mustCreate(t, c, fmt.Sprintf("%s/%016384d", path, i), "")
			}
		}
		var got []string
		s := mustScan(t, c, "/", inspect.Limits{})
		for _, f := range inspect.Diagnose(s, s, 0) {
			got = append(got, fmt.Sprint(f.Severity, " ", f.Problem, " ", f.Path))
			if f.Text == "" || f.Advice == "" {
				t.Errorf("incomplete: %+v", f)
			}
		}
		if want := []string{"error large-listing /huge", "warning large-listing /large"}; !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	})
}

// TestDiagnose_old_sessions: an owner of one process contends in two sessions.
func TestDiagnose_old_sessions(t *testing.T) {
	t.Parallel()
	of := func(pid int, party string) string { return metadata(lease.Metadata{Host: "h", PID: pid, Party: party}) }
	for name, test := range map[string]struct {
		second string
		want   int
	}{
		"a newer session":            {of(7, "p"), 1},
		"another owner":              {of(7, "q"), 0},
		"a nested program's process": {of(8, "p"), 0},
		"Curator":                    {"10.0.3.9", 0},
	} {
		var s inspect.Snapshot
		for path, z := range map[string]znode{
			"/a": {guid + "lock-0000000001", 0x11, 5, of(7, "p")},
			"/b": {guid + "lock-0000000001", 0x12, 6, test.second},
		} {
			l, _ := inspect.Of(below(path, "", z))
			s.Locks = append(s.Locks, l)
		}
		s.At = time.UnixMilli(1000)
		found := inspect.Diagnose(s, s, 0)
		if len(found) != test.want {
			t.Errorf("%s: found %+v", name, found)
		}
		for _, f := range found {
			if f.Problem != inspect.OldSession || f.Severity != inspect.Info || !strings.HasPrefix(f.Path, "/a/") || !strings.Contains(f.Text, "0x12") {
				t.Errorf("%s: found %+v", name, f)
			}
		}
	}
}

// TestConfirm lets two real owners wait for each other.
func TestConfirm(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		observer := e.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		both := make(chan struct{})
		for i, order := range [][]string{{"/d/a", "/d/b"}, {"/d/b", "/d/a"}} {
			c := e.client(t)
			owned := lock.ContextWithOwner(ctx, lock.NewOwner(ownerName(i)))
			go func() {
				_, _ = orPanic(lock.NewMutex(c, order[0])).Lock(owned)
				<-both
				_, _ = orPanic(lock.NewMutex(c, order[1])).Lock(owned)
			}()
			synctest.Wait()
		}
		close(both)
		synctest.Wait()
		defer synctest.Wait()
		defer cancel()
		free := mustScan(t, observer, "/nothing", inspect.Limits{})
		if again, err := inspect.Confirm(t.Context(), observer, free); err != nil || len(again.Locks) != 0 {
			t.Errorf("nothing: %+v, %v", again, err)
		}
		first := mustScan(t, observer, "/", inspect.Limits{})
		<-time.After(2 * time.Second) // virtual
		second := must.Get(inspect.Confirm(t.Context(), observer, first))(t)
		found := inspect.Diagnose(first, second, 0)
		if len(found) != 1 || found[0].Problem != inspect.Deadlock || found[0].Severity != inspect.Error || !found[0].Confirmed || found[0].Strength != inspect.Exact {
			t.Fatalf("found %+v", found)
		}
		cancel()
		synctest.Wait()
		third := must.Get(inspect.Confirm(t.Context(), observer, first))(t)
		if found := inspect.Deadlocks(first, third); len(found) != 0 {
			t.Errorf("after the waits have ended: %+v", found)
		}
	})
}

// ofProcess returns a contender of an owner in a process. It waits for the znodes, or holds.
func ofProcess(znode, party, host, process string, pid int, waitsFor ...string) inspect.Contender {
	c := inspect.Contender{
		Znode: znode, State: inspect.Holds, Side: inspect.Alone, By: inspect.Docent, Session: 7, Czxid: int64(znode[len(znode)-1]),
		Meta: &lease.Metadata{Version: 1, Host: host, PID: pid, Party: party, Process: process},
	}
	if len(waitsFor) > 0 {
		c.State, c.WaitsFor = inspect.Waits, waitsFor
	}
	return c
}

// A goroutine that waits for its parent looks like this: one process holds the lock and waits for it, by two
// owners. That is named, although the two may take turns.
func TestDiagnose_names_a_process_that_waits_for_itself(t *testing.T) {
	t.Parallel()
	parent, others := ofProcess("/l/a-1", "p-1", "h", "", 1), ofProcess("/l/a-2", "q-1", "i", "", 1, "/l/a-1")
	lease := ofProcess("/l/a-1", "p-1", "h", "", 1)
	lease.Meta.Handoff = true
	for name, test := range map[string]struct {
		contenders []inspect.Contender
		want       int
	}{
		"a child":                           {[]inspect.Contender{parent, ofProcess("/l/a-2", "p-2", "h", "", 1, "/l/a-1")}, 1},
		"two children":                      {[]inspect.Contender{parent, ofProcess("/l/a-2", "p-2", "h", "", 1, "/l/a-1"), ofProcess("/l/a-3", "p-3", "h", "", 1, "/l/a-2")}, 1},
		"a child behind another process":    {[]inspect.Contender{parent, others, ofProcess("/l/a-3", "p-2", "h", "", 1, "/l/a-2")}, 1},
		"another process":                   {[]inspect.Contender{parent, others}, 0},
		"a process of that id elsewhere":    {[]inspect.Contender{ofProcess("/l/a-1", "p", "h", "x", 1), ofProcess("/l/a-2", "q", "h", "y", 1, "/l/a-1")}, 0},
		"a process in another container":    {[]inspect.Contender{ofProcess("/l/a-1", "p", "h", "x", 1), ofProcess("/l/a-2", "q", "i", "x", 2, "/l/a-1")}, 1},
		"owners of which one hands it over": {[]inspect.Contender{lease, ofProcess("/l/a-2", "p-2", "h", "", 1, "/l/a-1")}, 0},
		"an owner that waits for itself":    {[]inspect.Contender{parent, ofProcess("/l/a-2", "p-1", "h", "", 1, "/l/a-1")}, 1}, // as ever
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inspect.Snapshot{At: time.Now(), Complete: true, Locks: []inspect.Lock{{Path: "/l", Kind: inspect.Mutex, Permits: 1, Contenders: test.contenders}}}
			var found []inspect.Finding
			for _, f := range inspect.Diagnose(s, s, 0) {
				if f.Problem == inspect.SelfWait {
					found = append(found, f)
				}
			}
			if len(found) != test.want || test.want > 0 && (len(found[0].Edges) != 1 || found[0].Edges[0].Blocker.Znode != "/l/a-1") {
				t.Errorf("%d findings, want %d: %+v", len(found), test.want, found)
			}
		})
	}
}

// Credentials help with what they protect, and with nothing else.
func TestDiagnose_advises_by_what_is_wrong(t *testing.T) {
	t.Parallel()
	invalid := framework.ValidatePath("/a/../b")
	for name, test := range map[string]struct {
		err         error
		problem     inspect.Problem
		credentials bool
	}{
		"no permission": {framework.ErrNoAuth, inspect.NoAuth, true},
		"not gzipped":   {framework.ErrNotGzip, inspect.Unreadable, false},
		"too large":     {framework.ErrTooLarge, inspect.LargeListing, false},
		"its name":      {invalid, inspect.Unreadable, false},
	} {
		s := inspect.Snapshot{Unread: []inspect.Unread{{Path: "/l", Err: test.err}}}
		found := inspect.Diagnose(s, s, 0)
		if len(found) != 1 || found[0].Problem != test.problem || strings.Contains(found[0].Advice, "credentials") != test.credentials {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
