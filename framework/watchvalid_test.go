package framework_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestWatchIsValid(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		then  func(t *testing.T, srv *zkserver.Server, c *framework.Client, w *framework.Watch)
		valid bool
	}{
		"while nothing happens": {func(*testing.T, *zkserver.Server, *framework.Client, *framework.Watch) {}, true},
		"until it fires": {func(t *testing.T, _ *zkserver.Server, c *framework.Client, _ *framework.Watch) {
			if err := c.Delete(t.Context(), "/watched"); err != nil {
				t.Error(err)
			}
		}, false},
		"until it is closed": {func(_ *testing.T, _ *zkserver.Server, _ *framework.Client, w *framework.Watch) {
			w.Close()
		}, false},
		"until its connection is lost, before it fires for that": {
			func(t *testing.T, srv *zkserver.Server, _ *framework.Client, w *framework.Watch) {
				srv.Refuse()
				srv.Cut()
				synctest.Wait()
				if w.Event() != 0 {
					t.Errorf("fired already: %v", w.Event())
				}
			}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c := virtual(t, srv)
				must.Get(c.Create(t.Context(), "/watched", nil))(t)
				w := mustWatch(t, c, "/watched", framework.WatchData)
				tc.then(t, srv, c, w)
				if w.Valid() != tc.valid {
					t.Errorf("valid: %v, want %v", w.Valid(), tc.valid)
				}
				srv.Accept()
			})
		})
	}
}

// TestAfterFireCallsUnlessStopped has one function called by the event, one after it,
// and one stopped before it.
func TestAfterFireCallsUnlessStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second))
		defer c.Close()
		mustCreate(t, c, "/after", "1")
		watch := func() *framework.Watch {
			w := must.Get(c.Watch(t.Context(), "/after", framework.WatchData))(t)
			return w
		}
		calls := make(chan string, 3)
		w, stopped, closed := watch(), watch(), watch()
		stop := w.AfterFire(func() { calls <- "by the event" })
		prevent := stopped.AfterFire(func() { calls <- "though stopped" })
		closed.AfterFire(func() { calls <- "though closed" })
		closed.Close()
		if first, again := prevent(), prevent(); !first || again {
			t.Errorf("stop returned %v, and then %v", first, again)
		}
		must.Get(c.Set(t.Context(), "/after", nil, framework.AnyVersion))(t)
		if got := <-calls; got != "by the event" || stop() {
			t.Errorf("called %s, or stopped after that", got)
		}
		late := w.AfterFire(func() { calls <- "after it" })
		if got := <-calls; got != "after it" || late() {
			t.Errorf("called %s, or stopped after that", got)
		}
		synctest.Wait()
		if len(calls) > 0 {
			t.Errorf("called %s", <-calls)
		}
	})
}

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
				if _, err := operator.SetACL(t.Context(), "/shared", acl.Open(), framework.AnyVersion); err != nil {
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
