package framework_test

import (
	"fmt"
	"sync"
	"sync/atomic"
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

// However busy the link, and however long the way, the watches that callers leave are removed as fast as they are left.
func TestWatchesOfCallersInALoopAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		link             *link
		watchers, others int
	}{
		"a slow link":             {&link{up: 100 * kilo, down: 100 * kilo}, 20, 0},
		"beside reads":            {&link{up: 100 * kilo, down: 100 * kilo}, 200, 50},
		"a long way that is full": {&link{up: 10 * mega, down: 10 * mega, trip: 50 * time.Millisecond}, 2000, 0},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := connect(t, srv.Addr(), framework.WithSessionTimeout(10*time.Second), tc.link.over(t, srv))
			mustCreate(t, c, "/d", "1")
			ctx := within(t, 9*time.Second)
			var callers sync.WaitGroup
			for range tc.others {
				callers.Go(func() {
					for ctx.Err() == nil {
						_, _, _ = c.Get(ctx, "/d")
					}
				})
			}
			var left atomic.Int64
			for i := range tc.watchers {
				callers.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						if w, err := c.Watch(ctx, fmt.Sprintf("/d/%d-%d", i, n), framework.WatchExists); err == nil {
							w.Close()
							left.Add(1)
						}
					}
				})
			}
			sleep(8 * time.Second)
			if n := srv.Watches(); n > 4*mostIdle || left.Load() < 8*mostIdle {
				t.Errorf("%d watches at the server after %d were left, want %d at most", n, left.Load(), 4*mostIdle)
			}
			callers.Wait()
		})
	}
}

// Many watches that callers leave at once are removed in small steps: the next call waits for few of them.
func TestACallWaitsForFewRemovals(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		l := &link{up: 100 * kilo, down: 100 * kilo, buffer: 256 << 10}
		c := connect(t, srv.Addr(), framework.WithSessionTimeout(10*time.Second), l.over(t, srv))
		mustCreate(t, c, "/d", "1")
		var watches []*framework.Watch
		for i := range 4 * mostIdle {
			w, err := c.Watch(t.Context(), fmt.Sprintf("/d/%080d", i), framework.WatchExists)
			check(t, err)
			watches = append(watches, w)
		}
		for _, w := range watches {
			w.Close()
		}
		sleep(time.Millisecond)
		start := time.Now()
		wantExists(t, c, "/d", true)
		wantBetween(t, "a call", time.Since(start), 0, 200*time.Millisecond)
		sleep(5 * time.Second)
		wantEqual(t, "watches at the server", srv.Watches(), mostIdle)
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
