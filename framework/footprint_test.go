package framework_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zktest"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools release
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// framework/internal/README.md lists them. Not parallel: it counts goroutines and bytes.
func TestFootprint(t *testing.T) {
	server := zktest.Shared(t)
	const clients = 20
	const goroutinesEach, bytesEach = 6, 100 << 10
	goroutines, bytes := runtime.NumGoroutine(), heap()
	var all []*framework.Client
	for range clients {
		c := connect(t, server.Addr())
		for range 3 {
			mustHold(t, c)
			mustWatch(t, c, "/", framework.WatchChildren)
			c.OnState(func(framework.StateChange) {})
		}
		all = append(all, c)
	}
	zktest.Eventually(t, patience, "each client has its goroutines and no more", func() bool {
		return runtime.NumGoroutine() <= goroutines+clients*goroutinesEach
	})
	if each := (int64(heap()) - int64(bytes)) / clients; each > bytesEach {
		t.Errorf("a client takes %d bytes, want at most %d", each, bytesEach)
	} else {
		t.Logf("a client takes %d KiB", each>>10)
	}
	runtime.KeepAlive(all)
}

// Not parallel: it counts bytes.
func TestWatchesOfOneZnodeShareTheDataThatTheyFound(t *testing.T) {
	const watches, size = 100, 64 << 10
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	path := mustCreate(t, c, "/watched", strings.Repeat("x", size))
	before := heap()
	var all []*framework.Watch
	for range watches {
		found, errs := c.WatchEach(t.Context(), framework.WatchData, path)
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		all = append(all, found...)
	}
	if grown := int64(heap()) - int64(before); grown > watches*size/2 {
		t.Errorf("%d watches of %d KiB take %d KiB, want one copy", watches, size>>10, grown>>10)
	}
	all[0].Data()[0] = 'y' // a copy
	if data := all[1].Data(); data[0] != 'x' {
		t.Errorf("another watch found %q", data[0])
	}
	runtime.KeepAlive(all)
	w := mustWatch(t, c, "/", framework.WatchChildren)
	w.Children()[0] = "other"
	wantList(t, "names of children", w.Children(), []string{"watched"})
}

// Not parallel: it counts the process's allocations.
func TestOperation_without_telemetry_allocates_nothing(t *testing.T) {
	c, ctx := connect(t, zktest.Shared(t).Addr()), t.Context()
	allocations := func(observed bool) float64 {
		return testing.AllocsPerRun(2000, func() {
			check(t, framework.Attempt(ctx, c, observed))
		})
	}
	with, without := allocations(true), allocations(false)
	if with != without {
		t.Errorf("an operation allocates %v times, want %v as without telemetry", with, without)
	}
	t.Logf("an operation allocates %v times around its request", with)

	tr := newTraces() // the check can fail
	c, ctx = connect(t, zktest.Shared(t).Addr(), framework.WithTracerProvider(tr.provider)), tr.caller(t)
	if with := allocations(true); with <= without {
		t.Errorf("an operation with a span allocates %v times, want more than %v", with, without)
	}
}
