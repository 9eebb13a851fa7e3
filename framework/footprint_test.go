package framework_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// lab/concurrency.md lists them. Not parallel: it counts goroutines and bytes.
func TestFootprint(t *testing.T) {
	server := zktest.Shared(t)
	const clients = 20
	const goroutinesEach, bytesEach = 5, 200 << 10
	goroutines, bytes := runtime.NumGoroutine(), heap()
	var all []*framework.Client
	for range clients {
		c := connect(t, server.Addr(), framework.WithMaxPacket(64<<10, 64<<10))
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
}

func TestWatchesShareNoNamesWithTheirCallers(t *testing.T) {
	c := connect(t, zktest.Shared(t).Addr()+fresh(t))
	mustCreate(t, c, "/parent/child", "", framework.WithParents())
	w := mustWatch(t, c, "/parent", framework.WatchChildren)
	w.Children()[0] = "other"
	if names := w.Children(); names[0] != "child" {
		t.Errorf("children %q", names)
	}
}

// Not parallel: it counts the process's allocations.
func TestOperation_without_telemetry_allocates_nothing(t *testing.T) {
	c := connect(t, zktest.Shared(t).Addr())
	allocations := func(observed bool) float64 {
		return testing.AllocsPerRun(2000, func() {
			if err := framework.Attempt(t.Context(), c, observed); err != nil {
				t.Error(err)
			}
		})
	}
	with, without := allocations(true), allocations(false)
	if with != without {
		t.Errorf("an operation allocates %v times, want %v as without telemetry", with, without)
	}
	t.Logf("an operation allocates %v times around its request", with)

	tr := newTraces() // the check can fail
	traced := connect(t, zktest.Shared(t).Addr(), framework.WithTracerProvider(tr.provider), framework.WithOperationSpans(true))
	c = traced
	if with := allocations(true); with <= without {
		t.Errorf("an operation with a span allocates %v times, want more than %v", with, without)
	}
}

// BenchmarkTelemetry measures what a span and a measurement add to an operation, without the
// request.
func BenchmarkTelemetry(b *testing.B) {
	server := zktest.Shared(b)
	spans := sdktrace.NewTracerProvider() // samples all and exports none
	for name, opts := range map[string][]framework.Option{
		"nothing": nil,
		"metrics": {framework.WithMeterProvider(newMeters().provider)},
		"spans":   {framework.WithTracerProvider(spans), framework.WithOperationSpans(true)},
	} {
		c := connect(b, server.Addr(), opts...)
		for _, observed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/observed=%v", name, observed), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					must.OK(b, framework.Attempt(b.Context(), c, observed))
				}
			})
		}
	}
}

// A rival is an operation done by the client and by the bare wire client.
type rival struct {
	ours func(c *framework.Client) error
	bare func(conn *framework.Bare) error
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, rival{
		ours: func(c *framework.Client) error {
			_, _, err := c.Get(b.Context(), benchPath)
			return err
		},
		bare: func(conn *framework.Bare) error { return conn.Get(benchPath) },
	})
}

func BenchmarkCreateDelete(b *testing.B) {
	benchmark(b, rival{
		ours: func(c *framework.Client) error {
			created, err := c.Create(b.Context(), benchPath+"/node-", nil, framework.Ephemeral(), framework.Sequential())
			if err != nil {
				return err
			}
			return c.Delete(b.Context(), created)
		},
		bare: func(conn *framework.Bare) error { return conn.CreateDelete(benchPath + "/node-") },
	})
}

const benchPath = "/bench"

// benchmark measures each side alone, for what it allocates, and then both in turns of a few
// operations, for the ratio of the medians. Background load therefore affects both equally.
func benchmark(b *testing.B, r rival) {
	b.Helper()
	server := zktest.Shared(b)
	c := connect(b, server.Addr(), framework.WithSessionTimeout(30*time.Second))
	mustCreate(b, c, benchPath+"/keep", "", framework.Idempotent())
	conn := must.Get(framework.DialBare(server.Addr()))(b)
	defer conn.Close()
	ours, bare := func() error { return r.ours(c) }, func() error { return r.bare(conn) }
	b.Run("docent", func(b *testing.B) { alone(b, ours) })
	b.Run("zk.Conn", func(b *testing.B) { alone(b, bare) })
	for _, goroutines := range []int{1, 64} {
		b.Run(fmt.Sprintf("ratio/%d", goroutines), func(b *testing.B) { inTurns(b, goroutines, ours, bare) })
	}
}

func alone(b *testing.B, call func() error) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		must.OK(b, call())
	}
}

func inTurns(b *testing.B, goroutines int, ours, bare func() error) {
	b.Helper()
	var a, z []time.Duration
	for b.Loop() {
		a = append(a, turn(b, goroutines, ours)...)
		z = append(z, turn(b, goroutines, bare)...)
	}
	b.ReportMetric(float64(median(a).Nanoseconds()), "docent-ns")
	b.ReportMetric(float64(median(z).Nanoseconds()), "zk.Conn-ns")
	b.ReportMetric(float64(median(a))/float64(median(z)), "ratio")
}

// turn has each goroutine do a few calls, and returns how long each took.
func turn(b *testing.B, goroutines int, call func() error) []time.Duration {
	b.Helper()
	const calls = 20
	took := make([]time.Duration, goroutines*calls)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range calls {
				start := time.Now()
				if err := call(); err != nil {
					b.Error(err)
				}
				took[g*calls+i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	return took
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
