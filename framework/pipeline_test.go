package framework_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestListToSeesTheZnode creates in one directory from many goroutines: each
// finds its own znode in the list that came with it.
func TestListToSeesTheZnode(t *testing.T) {
	t.Parallel()
	const goroutines, rounds = 8, 50
	c := newClient(t, zktest.Shared(t).Addr())
	dir := fresh(t) + "-list"
	mustCreate(t, c, dir, "")
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				var names []string
				path, err := c.Create(t.Context(), dir+"/n-", nil, framework.Ephemeral(), framework.Sequential(),
					framework.Protected(), framework.ListTo(&names))
				_, name := framework.SplitPath(path)
				if err != nil || !slices.Contains(names, name) {
					t.Errorf("Create: %q, %v with the list %v; want the znode in it", name, err, names)
				}
				if err := c.Delete(t.Context(), path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestListToTakesOneRoundTrip withholds the reply to the create until the
// listing has been asked for.
func TestListToTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := newClient(t, proxy.Addr())
	dir := fresh(t) + "-pipeline"
	mustCreate(t, c, dir, "")
	stuck := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: dir + "/*", Action: fault.HoldReply})
	created := make(chan error, 1)
	var names []string
	go func() {
		_, err := c.Create(t.Context(), dir+"/n", nil, framework.ListTo(&names))
		created <- err
	}()
	await(t, stuck.Hit(), "the create")
	zktest.Eventually(t, patience, "the listing is asked for before the create is answered", func() bool {
		return proxy.Count(fault.GetChildren) == 1
	})
	stuck.Release()
	if err := <-created; err != nil || !slices.Equal(names, []string{"n"}) {
		t.Errorf("Create: %v with the list %v, want [n]", err, names)
	}
}

func TestListToIsNilWhereItCouldNotBeHad(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := newClient(t, proxy.Addr())
	dir := fresh(t) + "-nil"
	mustCreate(t, c, dir, "")
	names := []string{"from before"}
	if _, err := c.Create(t.Context(), dir+"/missing/n", nil, framework.ListTo(&names)); !errors.Is(err, framework.ErrNoNode) || names != nil {
		t.Errorf("without the parent: %v with the list %v, want ErrNoNode and nil", err, names)
	}
	names = []string{"from before"}
	proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: dir + "/*", Action: fault.DropReply})
	path, err := c.Create(t.Context(), dir+"/n", nil, framework.Ephemeral(), framework.Protected(), framework.ListTo(&names))
	if err != nil || names != nil {
		t.Errorf("of %q, found again: %v with the list %v, want nil", path, err, names)
	}
}

func TestOpNever(t *testing.T) {
	t.Parallel()
	c := newClient(t, zktest.Shared(t).Addr())
	dir := fresh(t) + "-never"
	mustCreate(t, c, dir, "before")
	reason := errors.New("no such guard")
	_, err := c.Txn(t.Context(), framework.OpSet(dir, []byte("after"), framework.AnyVersion), framework.OpNever(reason))
	var culprit *framework.TxnError
	if !errors.Is(err, reason) || !errors.As(err, &culprit) || culprit.Index != 1 || !strings.Contains(fmt.Sprint(err), "never") {
		t.Errorf("Txn: %v, want the reason, of operation 1", err)
	}
	if data, _, err := c.Get(t.Context(), dir); err != nil || string(data) != "before" {
		t.Errorf("data %q, %v; want it unchanged", data, err)
	}
}

// TestWatchToTakesOneRoundTrip withholds the reply to the create until the watch has been asked for.
func TestWatchToTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := newClient(t, proxy.Addr())
	dir := fresh(t) + "-watch"
	mustCreate(t, c, dir, "")
	stuck := proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: dir + "/*", Action: fault.HoldReply})
	proxy.ResetRequests()
	created := make(chan error, 1)
	var watch *framework.Watch
	var st framework.Stat
	go func() {
		_, err := c.Create(t.Context(), dir+"/n", nil, framework.WatchTo(&watch), framework.StatTo(&st))
		created <- err
	}()
	await(t, stuck.Hit(), "the create")
	zktest.Eventually(t, patience, "the watch is asked for before the create is answered", func() bool {
		return proxy.Count(fault.Exists) == 1
	})
	stuck.Release()
	if err := <-created; err != nil || watch == nil || !watch.Valid() {
		t.Fatalf("Create: %v with the watch %v, want a valid one", err, watch)
	}
	if seen, exists := watch.Stat(); !exists || seen.Czxid != st.Czxid {
		t.Errorf("a watch of the znode %#x, want that of %#x, which was created", seen.Czxid, st.Czxid)
	}
	must.OK(t, c.Delete(t.Context(), dir+"/n"))
	await(t, watch.Fired(), "the event of the deletion")
}

func TestWatchToIsNilIfItCouldNotBeHad(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := newClient(t, proxy.Addr())
	dir := fresh(t) + "-nowatch"
	mustCreate(t, c, dir, "")
	mustCreate(t, c, dir+"/theirs", "")
	before := new(framework.Watch)
	watch := before
	for path, want := range map[string]error{
		dir + "/theirs":    framework.ErrNodeExists,
		dir + "/missing/n": framework.ErrNoNode,
	} {
		watch = before
		if _, err := c.Create(t.Context(), path, nil, framework.WatchTo(&watch)); !errors.Is(err, want) || watch != nil {
			t.Errorf("create %s: %v with the watch %v, want %v and nil", path, err, watch, want)
		}
	}
	watch = before
	if _, err := c.Create(t.Context(), dir+"/n-", nil, framework.Sequential(), framework.WatchTo(&watch)); err != nil || watch != nil {
		t.Errorf("a sequential create: %v with the watch %v, want nil", err, watch)
	}
	watch = before
	proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: dir + "/*", Action: fault.DropReply})
	if _, err := c.Create(t.Context(), dir+"/n", nil, framework.Ephemeral(), framework.KnownByData(), framework.WatchTo(&watch)); err != nil || watch != nil {
		t.Errorf("found again: %v with the watch %v, want nil", err, watch)
	}
}

func TestWatchToIsRefusedByTransactions(t *testing.T) {
	t.Parallel()
	c := newClient(t, zktest.Shared(t).Addr())
	var watch *framework.Watch
	op := framework.OpCreate("/n", nil, framework.Ephemeral(), framework.Protected(), framework.WatchTo(&watch))
	if _, err := c.CreateAll(t.Context(), op); err == nil || !strings.Contains(err.Error(), "WatchTo") {
		t.Errorf("CreateAll: %v, want an error that names WatchTo", err)
	}
	if _, err := c.Txn(t.Context(), framework.OpCreate("/n", nil, framework.WatchTo(&watch))); err == nil {
		t.Error("Txn took WatchTo, want an error")
	}
}

func TestCheckCreateSendsNothing(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := newClient(t, proxy.Addr())
	proxy.ResetRequests()
	if err := c.CheckCreate("/n", []byte("data"), framework.Ephemeral()); err != nil {
		t.Errorf("CheckCreate: %v, want nil", err)
	}
	for name, err := range map[string]error{
		"a path without its slash": c.CheckCreate("n", nil),
		"a TTL of nothing":         c.CheckCreate("/n", nil, framework.TTL(0)),
	} {
		if err == nil {
			t.Errorf("%s: nil, want an error", name)
		}
	}
	if err := c.CheckCreate("/n", make([]byte, framework.DefaultMaxRequest)); !errors.Is(err, framework.ErrTooLarge) {
		t.Errorf("too much data: %v, want ErrTooLarge", err)
	}
	if n := proxy.Count(fault.Create, fault.Exists); n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// Each create of one path has a listing of its own, taken after it, and a Stat of its own.
func TestCreatesOfOnePathAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const creates = 50
		c := virtual(t, srv)
		dir := fresh(t)
		mustCreate(t, c, dir, "")
		var wg sync.WaitGroup
		for range creates {
			wg.Go(func() {
				var names []string
				var st framework.Stat
				path, err := c.Create(t.Context(), dir+"/a-", nil, framework.Sequential(), framework.ListTo(&names), framework.StatTo(&st))
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Contains(names, strings.TrimPrefix(path, dir+"/")) {
					t.Errorf("%s is not in its own listing of %d names", path, len(names))
				}
				if _, read, err := c.Get(t.Context(), path); err != nil || read.Czxid != st.Czxid {
					t.Errorf("%s has czxid %d, its Stat says %d (%v)", path, read.Czxid, st.Czxid, err)
				}
			})
		}
		wg.Wait()
	})
}
