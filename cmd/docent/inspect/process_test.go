package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

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
