package framework_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
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
	if got := w.Event(); got != want {
		t.Errorf("event %v, want %v", got, want)
	}
}

func TestAWatchTellsWhatChanged(t *testing.T) {
	t.Parallel()
	addr := zktest.Shared(t).Addr() + fresh(t)
	c, other := connect(t, addr), connect(t, addr)
	mustCreate(t, c, "/data", "1")
	mustCreate(t, c, "/gone", "")
	mustCreate(t, c, "/parent/first", "")
	set := func(path string) func() error {
		return func() error { _, err := other.Set(t.Context(), path, nil, framework.AnyVersion); return err }
	}
	create := func(path string) func() error {
		return func() error { _, err := other.Create(t.Context(), path, nil); return err }
	}
	for _, tc := range []struct {
		name   string
		path   string
		kind   framework.WatchKind
		change func() error
		want   framework.EventKind
	}{
		{"data changed", "/data", framework.WatchData, set("/data"), framework.EventChanged},
		{"existing znode changed", "/data", framework.WatchExists, set("/data"), framework.EventChanged},
		{"absent znode created", "/new", framework.WatchExists, create("/new"), framework.EventCreated},
		{"child created", "/parent", framework.WatchChildren, create("/parent/second"), framework.EventChildrenChanged},
		{"znode deleted", "/gone", framework.WatchData, func() error { return other.Delete(t.Context(), "/gone") }, framework.EventDeleted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := mustWatch(t, c, tc.path, tc.kind)
			if w.Event() != 0 {
				t.Errorf("event %v before there was one", w.Event())
			}
			must.OK(t, tc.change())
			wantEvent(t, w, tc.want)
		})
	}
	w := mustWatch(t, c, "/data", framework.WatchData)
	if st, ok := w.Stat(); !ok || st.Version != 2 || len(w.Data()) != 0 {
		t.Errorf("the watch found %+v (%v), %q", st, ok, w.Data())
	}
	if got := mustWatch(t, c, "/parent", framework.WatchChildren).Children(); len(got) != 2 {
		t.Errorf("children %v, want two", got)
	}
	_, err := c.Watch(t.Context(), "/absent", framework.WatchData)
	wantErr(t, "watch of an absent znode's data", err, framework.ErrNoNode)
	_, err = c.Watch(t.Context(), "/data", 0)
	if err == nil {
		t.Error("a watch of no kind was accepted")
	}
}

// Not parallel: it measures the heap.
func TestAbandonedWatchesLeaveOneAtTheServer(t *testing.T) {
	server := zktest.Run(t)
	c := connect(t, server.Addr(), framework.WithSessionTimeout(20*time.Second))
	mustCreate(t, c, "/watched", "")
	wait := func(n int) {
		t.Helper()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range n / 10 {
					ctx, cancel := context.WithCancel(t.Context())
					w, err := c.Watch(ctx, "/watched", framework.WatchData)
					if err != nil {
						t.Error(err)
					} else {
						w.Close()
					}
					cancel()
				}
			})
		}
		wg.Wait()
	}
	wait(1000)
	before := heap()
	wait(5000)
	after := heap()
	if n, err := server.Watches(t.Context()); err != nil || n != 1 {
		t.Errorf("%d watches at the server (%v), want 1", n, err)
	}
	if growth := int64(after) - int64(before); growth > 200<<10 {
		t.Errorf("the heap grew by %d bytes over 5000 abandoned watches", growth)
	}
	w := mustWatch(t, c, "/watched", framework.WatchData)
	must.Get(c.Set(t.Context(), "/watched", nil, framework.AnyVersion))(t)
	wantEvent(t, w, framework.EventChanged)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools release
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestWatches_of_one_path_share_one(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	c := connect(t, server.Addr())
	mustCreate(t, c, "/shared", "")
	var watches []*framework.Watch
	for range 20 {
		watches = append(watches, mustWatch(t, c, "/shared", framework.WatchData))
	}
	left := mustWatch(t, c, "/shared", framework.WatchData)
	left.Close()
	left.Close()
	if n, err := server.Watches(t.Context()); err != nil || n != 1 {
		t.Errorf("%d watches at the server (%v), want 1", n, err)
	}
	must.Get(c.Set(t.Context(), "/shared", nil, framework.AnyVersion))(t)
	for _, w := range watches {
		wantEvent(t, w, framework.EventChanged)
	}
	select {
	case <-left.Fired():
		t.Error("a closed watch fired")
	default:
	}
}

func TestAChangeDuringAnOutageIsNoticed(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	var g gate
	c := connect(t, proxy.Addr(), framework.WithSessionTimeout(20*time.Second), framework.WithDialer(g.dial))
	other := connect(t, server.Addr())
	const n = 50
	dir := fresh(t)
	var watches []*framework.Watch
	for i := range n {
		path := fmt.Sprintf("%s/%d", dir, i)
		mustCreate(t, other, path, "")
		watches = append(watches, mustWatch(t, c, path, framework.WatchData))
	}
	g.shut()
	proxy.Cut()
	for i := range n {
		must.Get(other.Set(t.Context(), fmt.Sprintf("%s/%d", dir, i), []byte("new"), framework.AnyVersion))(t)
	}
	var wg sync.WaitGroup // requests that wait for the connection: they must not hide the change
	for range 20 {
		wg.Go(func() {
			if _, _, err := c.Children(t.Context(), dir); err != nil {
				t.Error(err)
			}
		})
	}
	g.open()
	for i, w := range watches {
		wantEvent(t, w, framework.EventReconnected)
		again := mustWatch(t, c, fmt.Sprintf("%s/%d", dir, i), framework.WatchData)
		if string(again.Data()) != "new" {
			t.Errorf("znode %d holds %q after the outage", i, again.Data())
		}
	}
	wg.Wait()
	if proxy.Count(fault.SetWatches) != 0 {
		t.Error("watches were set again in bulk, with a zxid that can hide changes")
	}
}

func TestAWatchFiresWhenItsSessionEnds(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	var g gate
	c := connect(t, server.Addr(), framework.WithDialer(g.dial))
	dir := mustCreate(t, c, fresh(t)+"/watched", "") // of its own: others come and go in the root
	w := mustWatch(t, c, dir, framework.WatchChildren)
	id, password := framework.SessionSecret(c)
	g.shut()
	must.OK(t, zktest.KillSession(t.Context(), server.Addr(), id, password))
	g.open()
	wantEvent(t, w, framework.EventSessionEnded)

	must.OK(t, c.AwaitConnected(t.Context()))
	w = mustWatch(t, c, dir, framework.WatchChildren)
	must.OK(t, c.Close())
	wantEvent(t, w, framework.EventSessionEnded)
}
