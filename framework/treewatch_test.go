package framework_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func watchTree(t *testing.T, c *framework.Client, path string) *framework.TreeWatch {
	t.Helper()
	w := must.Get(c.WatchTree(within(t, patience), path))(t)
	t.Cleanup(w.Close)
	return w
}

// wantChanges fails the test unless these are the next changes.
func wantChanges(t *testing.T, w *framework.TreeWatch, want ...framework.Change) {
	t.Helper()
	var got []framework.Change
	for len(got) < len(want) {
		changes, err := w.Next(within(t, patience))
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		got = append(got, changes...)
	}
	wantList(t, "changes", got, want)
}

func wantNoChange(t *testing.T, w *framework.TreeWatch) {
	t.Helper()
	if changes := changesNow(w); len(changes) > 0 {
		t.Errorf("changes %v, want none", changes)
	}
}

// changesNow returns the changes that w has, without waiting for one.
func changesNow(w *framework.TreeWatch) []framework.Change {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	changes, _ := w.Next(ctx)
	return changes
}

func mustSet(t *testing.T, c *framework.Client, path, data string) {
	t.Helper()
	must.Get(c.Set(t.Context(), path, []byte(data), framework.AnyVersion))(t)
}

func mustDelete(t *testing.T, c *framework.Client, path string) {
	t.Helper()
	must.OK(t, c.Delete(t.Context(), path))
}

// onEachServer runs fn with a client on a server in virtual time, and on a real one.
func onEachServer(t *testing.T, fn func(t *testing.T, c *framework.Client)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		virtually(t, func(t *testing.T, srv *zkserver.Server) { fn(t, virtual(t, srv)) })
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		fn(t, connect(t, zktest.Shared(t).Addr(), framework.WithNamespace(fresh(t)[1:])))
	})
}

func TestWatchTree_notifies_of_every_change_below(t *testing.T) {
	onEachServer(t, func(t *testing.T, c *framework.Client) {
		mustCreate(t, c, "/other", "")
		w := watchTree(t, c, "/a") // there is no such znode
		mustCreate(t, c, "/a", "")
		mustCreate(t, c, "/a/b", "")
		mustCreate(t, c, "/ab", "")
		mustSet(t, c, "/a/b", "1")
		mustSet(t, c, "/a", "1")
		mustSet(t, c, "/other", "1")
		mustDelete(t, c, "/a/b")
		mustDelete(t, c, "/a")
		wantChanges(t, w,
			framework.Change{Path: "/a", Kind: framework.EventCreated},
			framework.Change{Path: "/a/b", Kind: framework.EventCreated},
			framework.Change{Path: "/a/b", Kind: framework.EventChanged},
			framework.Change{Path: "/a", Kind: framework.EventChanged},
			framework.Change{Path: "/a/b", Kind: framework.EventDeleted},
			framework.Change{Path: "/a", Kind: framework.EventDeleted})
		wantNoChange(t, w)
		mustCreate(t, c, "/a", "") // which it does not return any more
		w.Close()
		wantErr(t, "Next of one that is closed", last(w.Next(t.Context())), framework.ErrClosed)
	})
}

// Up to ZooKeeper 3.8 a watch on the very path of a recursive one ends that.
func TestWatchTree_is_not_ended_by_other_watches_on_its_path(t *testing.T) {
	onEachServer(t, func(t *testing.T, c *framework.Client) {
		mustCreate(t, c, "/a", "")
		kinds := []framework.WatchKind{framework.WatchData, framework.WatchExists, framework.WatchChildren}
		watch := func(kind framework.WatchKind) *framework.Watch {
			w := must.Get(c.Watch(t.Context(), "/a", kind))(t)
			t.Cleanup(w.Close)
			return w
		}
		var watches []*framework.Watch
		for _, kind := range kinds {
			watches = append(watches, watch(kind)) // before it
		}
		w := watchTree(t, c, "/a")
		for _, kind := range kinds {
			watches = append(watches, watch(kind)) // and while it is valid
		}
		mustCreate(t, c, "/a/b", "")
		wantChanges(t, w, framework.Change{Path: "/a/b", Kind: framework.EventCreated})
		mustSet(t, c, "/a", "1")
		wantChanges(t, w, framework.Change{Path: "/a", Kind: framework.EventChanged})
		for _, one := range watches {
			await(t, one.Fired(), "the watch")
		}
		for _, kind := range kinds {
			watch(kind)
		}
		mustSet(t, c, "/a/b", "1")
		wantChanges(t, w, framework.Change{Path: "/a/b", Kind: framework.EventChanged})

		left := watch(framework.WatchData)
		w.Close()
		wantEvent(t, left, framework.EventUnseen) // it notified of the changes, and no connection was lost
		again := watch(framework.WatchData)
		mustSet(t, c, "/a", "2")
		await(t, again.Fired(), "a watch set after the recursive one is gone")
	})
}

func TestWatchTree_reports_a_lost_connection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, other := virtual(t, srv), virtual(t, srv)
		w := watchTree(t, c, "/a")
		for name, away := range map[string]func(){
			"a cut": srv.Cut,
			"an expiry": func() {
				check(t, srv.Expire(c.Session().ID))
			},
		} {
			away()
			wantChanges(t, w, framework.Change{Path: "/a", Kind: framework.EventUnseen})
			mustCreate(t, other, "/a", "") // by another client: seen by the watch that is set again
			wantChanges(t, w, framework.Change{Path: "/a", Kind: framework.EventCreated})
			mustDelete(t, other, "/a")
			wantChanges(t, w, framework.Change{Path: "/a", Kind: framework.EventDeleted})
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

func TestWatchTree_is_one_watch_at_the_server(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := connect(t, proxy.Addr(), framework.WithNamespace(fresh(t)[1:]))
	first, second := watchTree(t, c, "/a"), watchTree(t, c, "/a")
	mustCreate(t, c, "/a", "")
	created := framework.Change{Path: "/a", Kind: framework.EventCreated}
	wantChanges(t, first, created)
	wantChanges(t, second, created)
	wantEqual(t, "watches set", proxy.Count(fault.AddWatch), 1)
	first.Close()
	mustSet(t, c, "/a", "1")
	wantChanges(t, second, framework.Change{Path: "/a", Kind: framework.EventChanged})
	wantEqual(t, "removals while there is interest", proxy.Count(fault.RemoveWatches), 0)
	second.Close()
	zktest.Eventually(t, patience, "it is removed", func() bool { return proxy.Count(fault.RemoveWatches) == 1 })
	third := watchTree(t, c, "/a")
	mustSet(t, c, "/a", "2")
	wantChanges(t, third, framework.Change{Path: "/a", Kind: framework.EventChanged})
}

func TestWatchTree_waits_as_long_as_its_context(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		disconnect(srv)
		synctest.Wait()
		ctx := within(t, 3*time.Second)
		wantErr(t, "WatchTree", last(c.WatchTree(ctx, "/a")), context.DeadlineExceeded, framework.ErrNotConnected)
		srv.Accept()
		w := watchTree(t, c, "/a")
		mustCreate(t, c, "/a", "")
		c.Close()
		wantErr(t, "Next of a client that is closed", last(w.Next(t.Context())), framework.ErrClosed)
	})
}

func TestTreeWatch_is_valid_between_lost_connections(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		w, same := watchTree(t, c, "/a"), watchTree(t, c, "/a")
		wantValid := func(want bool) {
			t.Helper()
			wantEqual(t, "valid", w.Valid(), want)
		}
		wantValid(true)
		disconnect(srv)
		synctest.Wait()
		wantValid(false)
		wantNoChange(t, w)
		srv.Accept()
		must.Get2(c.Exists(within(t, patience), "/a"))(t)
		var changes []framework.Change
		for waiting := within(t, patience); len(changes) == 0 && waiting.Err() == nil; {
			<-time.After(time.Millisecond)
			before := w.Valid()
			changes = changesNow(w)
			// Valid and the change come at once: the other goroutines may run between the calls.
			if before && len(changes) == 0 || len(changes) > 0 && !w.Valid() {
				t.Fatalf("valid %v, then changes %v, then valid %v", before, changes, w.Valid())
			}
		}
		wantList(t, "changes", changes, []framework.Change{{Path: "/a", Kind: framework.EventUnseen}})
		w.Close()
		wantValid(false)
		if !same.Valid() {
			t.Error("another one is not valid any more")
		}
	})
}

func TestChildrenEach(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		for _, path := range []string{"/a", "/a/x", "/a/y", "/b"} {
			mustCreate(t, c, path, "")
		}
		srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Action: fault.DelayReply, Delay: time.Second})
		start := time.Now()
		names, stats, errs := c.ChildrenEach(t.Context(), "/a", "/none", "/b")
		wantEqual(t, "time that it took", time.Since(start), time.Second)
		slices.Sort(names[0])
		if errs[0] != nil || errs[2] != nil || !slices.Equal(names[0], []string{"x", "y"}) || len(names[2]) != 0 {
			t.Errorf("%q, %v", names, errs)
		}
		if stats[0].NumChildren != 2 || stats[0].Czxid == 0 || stats[2].Czxid <= stats[0].Czxid {
			t.Errorf("the Stats: %+v", stats)
		}
		wantErr(t, "/none", errs[1], framework.ErrNoNode)
	})
}

// All reads are within one round trip.
func TestGetEach_takes_the_time_of_one(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		paths := make([]string, 50)
		for i := range paths {
			paths[i] = mustCreate(t, c, "/n-", "", framework.Sequential())
		}
		srv.Rules().Add(fault.Rule{Op: fault.MultiRead, Action: fault.DelayReply, Delay: time.Second, Times: 1})
		start := time.Now()
		if _, errs := c.GetEach(t.Context(), paths...); slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
			t.Error(errs)
		}
		wantEqual(t, "time that it took", time.Since(start), time.Second)
		reads := srv.Rules().Add(fault.Rule{Op: fault.MultiRead, Action: fault.Pass, Times: fault.Forever})
		_, errs := c.GetEach(t.Context(), paths[0], "b")
		wantErr(t, "a path without its slash", errs[1], framework.ErrInvalidPath)
		if n := reads.Hits(); n != 0 || errs[0] != nil {
			t.Errorf("%d reads where a path is invalid, %v", n, errs)
		}
		if found, errs := c.GetEach(t.Context()); len(found) != 0 || len(errs) != 0 {
			t.Errorf("of nothing: %v, %v", found, errs)
		}
	})
}

// A refusal is not hidden behind the end of the context.
func TestWatchTree_that_a_server_refuses(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		forbidden := malformedReply{opcode: int32(proto.OpAddWatch), frame: func(xid int32) []byte {
			return frameOf(be(xid, int64(1), int(proto.CodeNoAuth)))
		}}
		c := virtual(t, srv, (&liar{malformedReply: forbidden}).dialer(srv))
		beforeItAsksAgain := within(t, time.Second/2)
		wantErr(t, "WatchTree", last(c.WatchTree(beforeItAsksAgain, "/a")), context.DeadlineExceeded, framework.ErrNoAuth)
		srv.Rules().Add(throttled(fault.AddWatch))
		wantErr(t, "WatchTree", last(c.WatchTree(within(t, patience), "/a")), context.DeadlineExceeded, framework.ErrNotConnected)
		wantEqual(t, "state", c.State(), connected) // so the error is of the refusal
	})
}
