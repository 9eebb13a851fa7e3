package framework_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// mostIdle is how many watches without a caller a server keeps for one client, or is about to remove.
const mostIdle = 1000

// waitAndLeave watches n paths that do not exist, one after another, and closes each Watch.
func waitAndLeave(t testing.TB, c *framework.Client, dir string, n int) {
	t.Helper()
	for i := range n {
		must.Get(c.Watch(t.Context(), fmt.Sprintf("%s/n-%d", dir, i), framework.WatchExists))(t).Close()
	}
}

func TestClosedWatchesAreRemoved(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		removals := srv.Rules().Add(fault.Rule{Op: fault.RemoveWatches, Action: fault.Pass, Times: fault.Forever})
		waitAndLeave(t, c, "", mostIdle)
		synctest.Wait()
		wantEqual(t, "requests for few", removals.Hits(), 0)
		used := mustWatch(t, c, "/used", framework.WatchExists)
		waitAndLeave(t, c, "/more", 5000)
		synctest.Wait()
		if n := srv.Watches(); n > mostIdle+1 {
			t.Errorf("%d watches at the server after 6,000 waits at new paths, want %d and one that is used at most", n, mostIdle)
		}
		wantBetween(t, "requests", removals.Hits(), 5000, 5100)
		mustCreate(t, c, "/used", "")
		wantEvent(t, used, framework.EventCreated)
	})
}

// A read whose caller has left leaves a watch as well.
func TestWatchesOfReadsWithoutACallerAreRemoved(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		for i := range 3000 {
			held := srv.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldReply})
			ctx := within(t, time.Millisecond)
			if w, err := c.Watch(ctx, fmt.Sprintf("/n-%d", i), framework.WatchExists); err == nil {
				w.Close()
				t.Error("the read was answered")
			}
			held.Release()
		}
		synctest.Wait()
		if n := srv.Watches(); n > mostIdle {
			t.Errorf("%d watches at the server, want %d at most", n, mostIdle)
		}
	})
}

// A path has one watch for its data and for its existence, and up to ZooKeeper 3.8 one at all.
func TestARemovalLeavesOtherWatchesOfItsPath(t *testing.T) {
	onEachServer(t, func(t *testing.T, c *framework.Client) {
		mustCreate(t, c, "/a", "")
		mustCreate(t, c, "/tree", "")
		mustWatch(t, c, "/tree", framework.WatchData).Close() // before the recursive one
		tree := watchTree(t, c, "/tree")
		mustWatch(t, c, "/tree", framework.WatchChildren).Close()
		mustWatch(t, c, "/a", framework.WatchExists).Close()
		mustWatch(t, c, "/a", framework.WatchChildren).Close()
		used := mustWatch(t, c, "/a", framework.WatchData)
		for _, kind := range []framework.WatchKind{framework.WatchData, framework.WatchChildren} {
			mustWatch(t, c, "/tree", kind).Close()
		}
		waitAndLeave(t, c, "", 4*mostIdle) // any order: all that were idle before are removed, save few
		must.OK(t, c.Sync(t.Context(), "/"))
		mustCreate(t, c, "/tree/b", "")
		wantChanges(t, tree, framework.Change{Path: "/tree/b", Kind: framework.EventCreated})
		mustSet(t, c, "/a", "1")
		wantEvent(t, used, framework.EventChanged)
	})
}
