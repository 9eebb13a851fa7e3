package framework_test

import (
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A filteredCase is a change whose event the server drops, and a later change.
type filteredCase struct {
	kind        framework.WatchKind
	lost, later func(t *testing.T, c *framework.Client)
}

// TestWatchAfterAFilteredEvent loses an event, and the watch with it, on a connection that goes on.
// The next Watch of the path must fire at the next change, and notify the Watch that missed one.
func TestWatchAfterAFilteredEvent(t *testing.T) {
	t.Parallel()
	const path = "/filtered"
	do := func(op func(t *testing.T, c *framework.Client) error) func(*testing.T, *framework.Client) {
		return func(t *testing.T, c *framework.Client) {
			t.Helper()
			must.OK(t, op(t, c))
		}
	}
	set := do(func(t *testing.T, c *framework.Client) error {
		_, err := c.Set(t.Context(), path, []byte("x"), framework.AnyVersion)
		return err
	})
	remove := do(func(t *testing.T, c *framework.Client) error { return c.DeleteTree(t.Context(), path) })
	replace := func(t *testing.T, c *framework.Client) {
		t.Helper()
		remove(t, c)
		mustCreate(t, c, path, "again")
	}
	addChild := do(func(t *testing.T, c *framework.Client) error {
		_, err := c.Create(t.Context(), path+"/child-", nil, framework.Sequential())
		return err
	})
	for name, tc := range map[string]filteredCase{
		"data/changed":             {framework.WatchData, set, set},
		"data/replaced":            {framework.WatchData, replace, remove},
		"exists/changed":           {framework.WatchExists, set, remove},
		"exists/deleted":           {framework.WatchExists, remove, replaceMissing(path)},
		"children/child_created":   {framework.WatchChildren, addChild, addChild},
		"children/parent_replaced": {framework.WatchChildren, replace, addChild},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c, operator := virtual(t, srv), virtual(t, srv)
				mustCreate(t, operator, path, "")
				missed := mustWatch(t, c, path, tc.kind)
				drop := srv.Rules().Add(fault.Rule{Op: fault.Event, Path: path, Action: fault.DropEvent, Times: fault.Forever})
				tc.lost(t, operator)
				synctest.Wait()
				if drop.Release(); drop.Hits() == 0 || missed.Event() != 0 {
					t.Fatalf("%d events dropped, and the Watch fired with %v", drop.Hits(), missed.Event())
				}
				next := mustWatch(t, c, path, tc.kind)
				if got := missed.Event(); got != framework.EventUnseen {
					t.Errorf("the Watch that missed a change: %v, want %v", got, framework.EventUnseen)
				}
				if got := next.Event(); got != 0 {
					t.Errorf("the next Watch fired with %v before anything changed", got)
				}
				tc.later(t, operator)
				synctest.Wait()
				if next.Event() == 0 {
					t.Error("the next Watch did not fire when the znode changed again")
				}
			})
		})
	}
}

func replaceMissing(path string) func(*testing.T, *framework.Client) {
	return func(t *testing.T, c *framework.Client) {
		t.Helper()
		mustCreate(t, c, path, "")
	}
}

// TestWatchesThatMissNothingShareOne reads an unchanged znode again and again: that fires nothing
// and sets no second watch.
func TestWatchesThatMissNothingShareOne(t *testing.T) {
	t.Parallel()
	for _, kind := range []framework.WatchKind{framework.WatchData, framework.WatchExists, framework.WatchChildren} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c, operator := virtual(t, srv), virtual(t, srv)
				mustCreate(t, operator, "/shared", "")
				first := mustWatch(t, c, "/shared", kind)
				if _, err := operator.SetACL(t.Context(), "/shared", framework.OpenACL(), framework.AnyVersion); err != nil {
					t.Fatal(err) // no watch tells of that
				}
				mustWatch(t, c, "/shared", kind)
				if first.Event() != 0 || srv.Watches() != 1 {
					t.Errorf("event %v with %d watches at the server, want none with 1", first.Event(), srv.Watches())
				}
			})
		})
	}
}
