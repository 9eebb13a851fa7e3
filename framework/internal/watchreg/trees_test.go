package watchreg_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/watchreg"
)

var errLeft = errors.New("left by the test")

func wantChanges(t *testing.T, trees *watchreg.Trees, w *watchreg.Tree, want ...watchreg.Change) {
	t.Helper()
	if got, err := trees.Take(w); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestTreesOutliveConnections(t *testing.T) {
	var trees watchreg.Trees
	var first, second watchreg.Tree
	trees.Join(&first, "/a")
	trees.Join(&second, "/a")
	job, ok := trees.Next("one session")
	if !ok || job.Path != "/a" || !job.Set || trees.Valid(&first) {
		t.Fatalf("job %+v, %t; want to set a watch at /a", job, ok)
	}
	trees.Sever("one session")
	trees.Done(job) // of the lost connection
	if trees.Valid(&first) {
		t.Error("valid by a job of a lost connection")
	}
	for range 2 { // the second connection may have missed changes
		job, _ = trees.Next("another session")
		trees.Done(job)
		<-first.Ready()
		trees.Sever("another session")
	}
	wantChanges(t, &trees, &first, watchreg.Change{Path: "/a", Event: watchreg.Unseen})

	trees.Leave(&first, errLeft)
	if _, err := trees.Take(&first); !errors.Is(err, errLeft) {
		t.Errorf("got %v, want the reason of Leave", err)
	}
	trees.Leave(&second, errLeft)
	if job, ok := trees.Next("another session"); ok {
		t.Errorf("job %+v, want none: the server has forgotten the watch", job)
	}
}

func TestTreesReportChangesBelowTheirPaths(t *testing.T) {
	var trees watchreg.Trees
	var w watchreg.Tree
	trees.Join(&w, "/a")
	job, _ := trees.Next("session")
	trees.Done(job)
	for _, c := range []struct {
		event  watchreg.Event
		path   string
		parent string
	}{
		{watchreg.Created, "/a/b", "/a"},
		{watchreg.Changed, "/a/b", ""},
		{watchreg.Created, "/a/b/c", ""},
		{watchreg.Deleted, "/ab", ""},
		{watchreg.ChildrenChanged, "/a", ""},
	} {
		if parent := trees.Fire("session", c.event, c.path); parent != c.parent {
			t.Errorf("event %d of %s: parent %q, want %q", c.event, c.path, parent, c.parent)
		}
	}
	wantChanges(t, &trees, &w,
		watchreg.Change{Path: "/a/b", Event: watchreg.Created},
		watchreg.Change{Path: "/a/b", Event: watchreg.Changed},
		watchreg.Change{Path: "/a/b/c", Event: watchreg.Created})
}

// What a former session's connection still delivers, in any order, changes nothing: neither its events, nor
// what its server says of a watch.
func TestTreesIgnoreAFormerSession(t *testing.T) {
	var trees watchreg.Trees
	var w watchreg.Tree
	trees.Join(&w, "/a")
	late, _ := trees.Next("former")
	job, _ := trees.Next("present")
	trees.Fire("former", watchreg.Deleted, "/a/b")
	trees.Done(job)
	trees.Fire("former", watchreg.Deleted, "/a/c")
	trees.Delay(late, errors.New("for now"))
	trees.Refuse(late, errors.New("for good"))
	if parent := trees.Fire("former", watchreg.Created, "/a/d"); parent != "" {
		t.Errorf("an event of a former session concerns the children of %q", parent)
	}
	wantChanges(t, &trees, &w)
	if err := trees.Refusal(&w); err != nil || !trees.Valid(&w) {
		t.Errorf("refusal %v, valid %v; want nil and true", err, trees.Valid(&w))
	}
	trees.Fire("present", watchreg.Created, "/a/b")
	wantChanges(t, &trees, &w, watchreg.Change{Path: "/a/b", Event: watchreg.Created})
}

// A server's event may have any path. Fire returns for each, and notifies only the Trees above it.
func TestTreesTakeAnEventOfAnyPath(t *testing.T) {
	for path, want := range map[string]int{
		"/": 1, "/a": 1, "/b/": 1, "//": 1, "//b": 1, "/..": 1, "/a/..": 1, "/.": 1,
		"": 0, "a": 0, "a/b": 0, ".": 0, "..": 0, "./a": 0, "\x00": 0, "zookeeper/config": 0,
	} {
		var trees watchreg.Trees
		var w watchreg.Tree
		trees.Join(&w, "/")
		trees.Next("session")
		fired := make(chan struct{})
		go func() {
			trees.Fire("session", watchreg.Deleted, path)
			close(fired)
		}()
		select {
		case <-fired:
		case <-time.After(10 * time.Second):
			t.Fatalf("Fire does not return for an event of %q", path)
		}
		if changes, _ := trees.Take(&w); len(changes) != want {
			t.Errorf("changes %v for an event of %q, want %d", changes, path, want)
		}
	}
}
