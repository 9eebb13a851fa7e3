package framework_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

func mustWatch(t testing.TB, c *framework.Client, path string, kind framework.WatchKind) *framework.Watch {
	t.Helper()
	w := must.Get(c.Watch(t.Context(), path, kind))(t)
	t.Cleanup(w.Close)
	return w
}

func wantEvent(t testing.TB, w *framework.Watch, want framework.EventKind) {
	t.Helper()
	await(t, w.Fired(), want.String())
	wantEqual(t, "event", w.Event(), want)
}

// TestWatchEachAsksForAllAtOnce sets watches on znodes that exist and on one that
// doesn't, where every reply takes a second, and the first try is cut off.
func TestWatchEachAsksForAllAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithSessionTimeout(20*time.Second))
		mustCreate(t, c, "/each/a", "1")
		mustCreate(t, c, "/each/b", "2")
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/each/b", Action: fault.DropReply})
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.DelayReply, Delay: time.Second, Times: fault.Forever, Skip: 1})
		start := time.Now()
		ws, errs := c.WatchEach(t.Context(), framework.WatchData, "/each/a", "/each/none", "/each/b")
		wantWithin(t, start, 2500*time.Millisecond)
		if errs[0] != nil || !errors.Is(errs[1], framework.ErrNoNode) || errs[2] != nil || ws[1] != nil {
			t.Fatalf("%v, %q", ws, errs)
		}
		if string(ws[0].Data()) != "1" || string(ws[2].Data()) != "2" {
			t.Errorf("data %q and %q", ws[0].Data(), ws[2].Data())
		}
		must.OK(t, c.Delete(t.Context(), "/each/b"))
		<-ws[2].Fired()
		if got := ws[2].Event(); got != framework.EventDeleted || ws[0].Event() != 0 {
			t.Errorf("events %v and %v, want deleted alone", got, ws[0].Event())
		}
	})
}

// TestWatchEachSharesWhatIsRead has two calls watch a znode at a time, and one more when both have
// returned. If the second call sent a read, the server would refuse it.
func TestWatchEachSharesWhatIsRead(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithSessionTimeout(20*time.Second))
		mustCreate(t, c, "/each/a", "1")
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/each/a", Action: fault.DelayReply, Delay: time.Second})
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/each/a", Action: fault.DropReply, Times: fault.Forever})
		var watches [3]*framework.Watch
		watch := func(i int) {
			ws, errs := c.WatchEach(t.Context(), framework.WatchData, "/each/a")
			check(t, errs[0])
			watches[i] = ws[0]
		}
		var both sync.WaitGroup
		start := time.Now()
		both.Go(func() { watch(0) })
		both.Go(func() { watch(1) })
		both.Wait()
		watch(2)
		wantEqual(t, "time that it took", time.Since(start), time.Second)
		watches[0].Data()[0] = 'x' // belongs to this watch alone
		must.Get(c.Set(t.Context(), "/each/a", []byte("2"), framework.AnyVersion))(t)
		for i, w := range watches {
			<-w.Fired()
			if st, ok := w.Stat(); !ok || st.Version != 0 || w.Event() != framework.EventChanged || i > 0 && string(w.Data()) != "1" {
				t.Errorf("watch %d: %+v, %v, %v, data %q", i, st, ok, w.Event(), w.Data())
			}
		}
	})
}

func TestWatchIsValid(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		then  func(t *testing.T, srv *zkserver.Server, c *framework.Client, w *framework.Watch)
		valid bool
	}{
		"while nothing happens": {func(*testing.T, *zkserver.Server, *framework.Client, *framework.Watch) {}, true},
		"until it fires": {func(t *testing.T, _ *zkserver.Server, c *framework.Client, _ *framework.Watch) {
			check(t, c.Delete(t.Context(), "/watched"))
		}, false},
		"until it is closed": {func(_ *testing.T, _ *zkserver.Server, _ *framework.Client, w *framework.Watch) {
			w.Close()
		}, false},
		"until its connection is lost, before it fires for that": {
			func(t *testing.T, srv *zkserver.Server, _ *framework.Client, w *framework.Watch) {
				disconnect(srv)
				synctest.Wait()
				if w.Event() != 0 {
					t.Errorf("fired already: %v", w.Event())
				}
			}, false,
		},
	}
	for name, tc := range cases {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := virtual(t, srv)
			must.Get(c.Create(t.Context(), "/watched", nil))(t)
			w := mustWatch(t, c, "/watched", framework.WatchData)
			tc.then(t, srv, c, w)
			wantEqual(t, "valid", w.Valid(), tc.valid)
			srv.Accept()
		})
	}
}

// TestAfterFireCallsUnlessStopped has one function called by the event, one after it,
// and one stopped before it.
func TestAfterFireCallsUnlessStopped(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithSessionTimeout(20*time.Second))
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

// A filteredCase is a change whose event the server drops, and a later change with its event.
type filteredCase struct {
	kind        framework.WatchKind
	lost, later func(t *testing.T, c *framework.Client)
	event       framework.EventKind
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
		return last(c.Set(t.Context(), path, []byte("x"), framework.AnyVersion))
	})
	remove := do(func(t *testing.T, c *framework.Client) error { return c.DeleteTree(t.Context(), path) })
	replace := func(t *testing.T, c *framework.Client) {
		t.Helper()
		remove(t, c)
		mustCreate(t, c, path, "again")
	}
	addChild := do(func(t *testing.T, c *framework.Client) error {
		return last(c.Create(t.Context(), path+"/child-", nil, framework.Sequential()))
	})
	create := func(t *testing.T, c *framework.Client) {
		t.Helper()
		mustCreate(t, c, path, "")
	}
	for name, tc := range map[string]filteredCase{
		"data/changed":             {framework.WatchData, set, set, framework.EventChanged},
		"data/replaced":            {framework.WatchData, replace, remove, framework.EventDeleted},
		"exists/changed":           {framework.WatchExists, set, set, framework.EventChanged},
		"exists/changed, deleted":  {framework.WatchExists, set, remove, framework.EventDeleted},
		"exists/deleted":           {framework.WatchExists, remove, create, framework.EventCreated},
		"children/child_created":   {framework.WatchChildren, addChild, addChild, framework.EventChildrenChanged},
		"children/parent_replaced": {framework.WatchChildren, replace, addChild, framework.EventChildrenChanged},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
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
			wantEqual(t, "event of the Watch that missed a change", missed.Event(), framework.EventUnseen)
			wantEqual(t, "event of the next Watch before a change", next.Event(), 0)
			tc.later(t, operator)
			wantEvent(t, next, tc.event)
		})
	}
}

// TestRecheck has no client read the znode whose event the server drops, so that only the recheck can find
// the change.
func TestRecheck(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, operator := virtual(t, srv), virtual(t, srv)
		mustCreate(t, operator, "/seldom", "1")
		mustCreate(t, operator, "/often", "1")
		timeout := c.Session().Timeout
		sharing := func() *framework.Watch { // takes what an earlier call has read
			watches, errs := c.WatchEach(t.Context(), framework.WatchData, "/seldom")
			t.Cleanup(watches[0].Close)
			return must.Get(watches[0], errs[0])(t)
		}
		other, early, closed := sharing(), mustWatch(t, c, "/often", framework.WatchData), sharing()
		early.Recheck()
		closed.Recheck()
		closed.Close()
		must.Get(operator.Set(t.Context(), "/often", nil, framework.AnyVersion))(t)
		for _, changed := range []bool{false, true} {
			if changed {
				drop := srv.Rules().Add(fault.Rule{Op: fault.Event, Path: "/seldom", Action: fault.DropEvent, Times: fault.Forever})
				must.Get(operator.Set(t.Context(), "/seldom", []byte("2"), framework.AnyVersion))(t)
				synctest.Wait()
				drop.Release()
			}
			begun := time.Now()
			w := sharing()
			must.OK(t, w.Await(t.Context()))
			w.Recheck() // has no effect any more
			if took := time.Since(begun); took < timeout || took > 2*timeout || w.Event() != framework.EventUnseen {
				t.Errorf("event %v after %v, want %v after one to two times %v", w.Event(), took, framework.EventUnseen, timeout)
			}
			if again := string(sharing().Data()); (again == "2") != changed {
				t.Errorf("the next Watch found %q; changed: %v", again, changed)
			}
			if notified := other.Event() != 0; notified != changed {
				t.Errorf("a Watch without a recheck fired with %v; changed: %v", other.Event(), changed)
			}
		}
		if early.Event() != framework.EventChanged || closed.Event() != 0 {
			t.Errorf("a Watch that fired before: %v; a closed one: %v", early.Event(), closed.Event())
		}
		ctx := within(t, timeout/2)
		wantErr(t, "Await", sharing().Await(ctx), context.DeadlineExceeded)
	})
}

// TestWatches_of_one_path_share_one reads an unchanged znode again and again: that fires nothing
// and sets no second watch.
func TestWatches_of_one_path_share_one(t *testing.T) {
	t.Parallel()
	for _, kind := range []framework.WatchKind{framework.WatchData, framework.WatchExists, framework.WatchChildren} {
		runVirtually(t, kind.String(), func(t *testing.T, srv *zkserver.Server) {
			c, operator := virtual(t, srv), virtual(t, srv)
			mustCreate(t, operator, "/shared", "")
			watches := []*framework.Watch{mustWatch(t, c, "/shared", kind)}
			must.Get(operator.SetACL(t.Context(), "/shared", acl.Open(), framework.AnyVersion))(t) // no watch tells of that
			for range 20 {
				watches = append(watches, mustWatch(t, c, "/shared", kind))
			}
			left := mustWatch(t, c, "/shared", kind)
			left.Close()
			left.Close()
			if watches[0].Event() != 0 || srv.Watches() != 1 {
				t.Errorf("event %v with %d watches at the server, want none with 1", watches[0].Event(), srv.Watches())
			}
			must.OK(t, operator.Delete(t.Context(), "/shared"))
			for _, w := range watches {
				wantEvent(t, w, framework.EventDeleted)
			}
			wantOpen(t, left.Fired(), "a closed watch fired")
		})
	}
}

// A read that sets a watch is taken back once the context of its last caller has ended.
func TestAWatchWithoutACallerIsNotRead(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/large", "")
		mustCreate(t, c, "/a", "")
		reads := srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/a", Action: fault.Pass, Times: fault.Forever})
		srv.Freeze()
		var bulk sync.WaitGroup
		for range 8 {
			bulk.Go(func() { check(t, last(c.Set(t.Context(), "/large", make([]byte, 1000<<10), framework.AnyVersion))) })
		}
		synctest.Wait() // the window has no room
		each := func(patience time.Duration) <-chan error {
			return background(func() error {
				_, errs := c.WatchEach(within(t, patience), framework.WatchData, "/a")
				return errs[0]
			})
		}
		alone := background(func() error { return last(c.Watch(within(t, 100*time.Millisecond), "/a", framework.WatchData)) })
		left, leaves := each(200*time.Millisecond), each(300*time.Millisecond)
		wantErr(t, "a read of its own", <-alone, context.DeadlineExceeded, framework.ErrNotSent)
		wantErr(t, "a shared read", <-left, context.DeadlineExceeded)
		wantErr(t, "a shared read of the last caller", <-leaves, context.DeadlineExceeded, framework.ErrNotSent)
		left, stays := each(200*time.Millisecond), each(time.Minute)
		wantErr(t, "a shared read", <-left, context.DeadlineExceeded)
		srv.Thaw()
		check(t, <-stays)
		bulk.Wait()
		wantEqual(t, "reads of /a", reads.Hits(), 1)
	})
}
