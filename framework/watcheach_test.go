package framework_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestWatchEachAsksForAllAtOnce sets watches on znodes that exist and on one that
// doesn't, where every reply takes a second, and the first try is cut off.
func TestWatchEachAsksForAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second))
		defer c.Close()
		mustCreate(t, c, "/each/a", "1")
		mustCreate(t, c, "/each/b", "2")
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/each/b", Action: fault.DropReply})
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.DelayReply, Delay: time.Second, Times: fault.Forever, Skip: 1})
		start := time.Now()
		ws, errs := c.WatchEach(t.Context(), framework.WatchData, "/each/a", "/each/none", "/each/b")
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("took %v", took)
		}
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

func TestWatchEachRefusesAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second))
		defer c.Close()
		if _, errs := c.WatchEach(t.Context(), framework.WatchData, "/", "no slash"); errs[1] == nil {
			t.Error("an invalid path was accepted")
		}
		if _, errs := c.WatchEach(t.Context(), 0, "/"); errs[0] == nil {
			t.Error("an invalid kind was accepted")
		}
		srv.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, errs := c.WatchEach(ctx, framework.WatchData, "/", "/x")
		for _, err := range errs {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want the context's error", err)
			}
		}
		srv.Thaw()
	})
}

// TestParentsHoldAnEmptyArray: kazoo can't read a znode that holds null.
func TestParentsHoldAnEmptyArray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second))
		defer c.Close()
		mustCreate(t, c, "/parents/of/this", "", framework.Ephemeral())
		for _, path := range []string{"/parents", "/parents/of"} {
			if data, _, err := c.Get(t.Context(), path); err != nil || data == nil || len(data) != 0 {
				t.Errorf("%s holds %#v (%v), want an empty array", path, data, err)
			}
		}
	})
}

// TestWatchEachSharesWhatIsRead has two calls watch a znode at a time, and one more when both have
// returned. If the second call sent a read, the server would refuse it.
func TestWatchEachSharesWhatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second))
		defer c.Close()
		mustCreate(t, c, "/each/a", "1")
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/each/a", Action: fault.DelayReply, Delay: time.Second})
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/each/a", Action: fault.DropReply, Times: fault.Forever})
		var watches [3]*framework.Watch
		watch := func(i int) {
			ws, errs := c.WatchEach(t.Context(), framework.WatchData, "/each/a")
			if errs[0] != nil {
				t.Error(errs[0])
			}
			watches[i] = ws[0]
		}
		var both sync.WaitGroup
		start := time.Now()
		both.Go(func() { watch(0) })
		both.Go(func() { watch(1) })
		both.Wait()
		watch(2)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want one read's second", took)
		}
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

// TestWatchEach_continues_where_another_ends has the call end whose read another one shares,
// and the znode be created meanwhile that the read has not found.
func TestWatchEach_continues_where_another_ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second))
		defer c.Close()
		mustCreate(t, c, "/each", "")
		srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: "/each/a", Action: fault.DelayReply, Delay: 2 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() {
			if _, errs := c.WatchEach(ctx, framework.WatchData, "/each/a"); !errors.Is(errs[0], context.DeadlineExceeded) {
				t.Errorf("error %v, want the deadline's", errs[0])
			}
		})
		var ws []*framework.Watch
		both.Go(func() {
			synctest.Wait()
			var errs []error
			if ws, errs = c.WatchEach(t.Context(), framework.WatchData, "/each/a"); errs[0] != nil {
				t.Error(errs[0])
			}
		})
		other := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(20*time.Second))
		defer other.Close()
		mustCreate(t, other, "/each/a", "1")
		both.Wait()
		must.OK(t, other.Delete(t.Context(), "/each/a"))
		<-ws[0].Fired()
		if got := ws[0].Event(); got != framework.EventDeleted {
			t.Errorf("event %v, want deleted", got)
		}
	})
}
