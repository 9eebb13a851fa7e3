package watchreg_test

import (
	"errors"
	"testing"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
)

var errLeft = errors.New("left by the test")

func wantChanges(t *testing.T, trees *watchreg.Trees, w *watchreg.Tree, want ...watchreg.Change) {
	t.Helper()
	check.Slices(t, must.Get(trees.Take(w))(t), want, "Take")
}

func TestTreesOutliveConnections(t *testing.T) {
	var trees watchreg.Trees
	var first, second watchreg.Tree
	trees.Join(&first, "/a")
	trees.Join(&second, "/a")
	job, ok := trees.Next("one session")
	must.That(t, ok && job.Path == "/a" && job.Set && !trees.Valid(&first),
		"job %+v, %t; want to set a watch at /a", job, ok)
	trees.Sever("one session")
	trees.Done(job) // of the lost connection
	check.That(t, !trees.Valid(&first), "valid by a job of a lost connection")
	for range 2 { // the second connection may have missed changes
		job, _ = trees.Next("another session")
		trees.Done(job)
		<-first.Ready()
		trees.Sever("another session")
	}
	wantChanges(t, &trees, &first, watchreg.Change{Path: "/a", Event: watchreg.Unseen})

	trees.Leave(&first, errLeft)
	check.Is(t, must.Err(trees.Take(&first)), errLeft, "got, want the reason of Leave")
	trees.Leave(&second, errLeft)
	job, ok = trees.Next("another session")
	check.That(t, !ok, "job %+v, want none: the server has forgotten the watch", job)
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
		check.Equal(t, trees.Fire(c.event, c.path), c.parent, "event %d of %s: parent", c.event, c.path)
	}
	wantChanges(t, &trees, &w,
		watchreg.Change{Path: "/a/b", Event: watchreg.Created},
		watchreg.Change{Path: "/a/b", Event: watchreg.Changed},
		watchreg.Change{Path: "/a/b/c", Event: watchreg.Created})
}
