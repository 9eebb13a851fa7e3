package cache_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/zktest"
)

// benchmarkSize is how many znodes the cache of a benchmark has below its path.
const benchmarkSize = 10_000

// benchmarkTree makes a tree of 100 directories of 99 znodes, with data of 100 bytes.
func benchmarkTree(b *testing.B) (c *framework.Client, path string) {
	b.Helper()
	c = must.Get(framework.NewClient(zktest.Shared(b).Addr()))(b)
	b.Cleanup(func() { _ = c.Close() })
	path = "/bench-" + rand.Text()
	ops := []framework.TxnOp{framework.OpCreate(path, nil)}
	flush := func() {
		must.Get(c.Txn(b.Context(), ops...))(b)
		ops = nil
	}
	data := make([]byte, 100)
	for i := range benchmarkSize / 100 {
		dir := fmt.Sprintf("%s/%d", path, i)
		ops = append(ops, framework.OpCreate(dir, data))
		for j := range 99 {
			ops = append(ops, framework.OpCreate(fmt.Sprintf("%s/%d", dir, j), data))
		}
		flush()
	}
	return c, path
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkFill fills a cache of 10,000 znodes, and measures the memory that it takes.
func BenchmarkFill(b *testing.B) {
	c, path := benchmarkTree(b)
	for b.Loop() {
		before := heap()
		start := time.Now()
		made := must.Get(cache.New(c, path))(b)
		must.OK(b, made.Ready(b.Context()))
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/fill")
		b.ReportMetric(float64(int64(heap()-before))/benchmarkSize, "B/znode")
		if n := made.Snapshot().Len(); n != benchmarkSize+1 {
			b.Fatalf("%d znodes", n)
		}
		must.OK(b, made.Close())
	}
}

// BenchmarkChange measures from the write of another client to the event of a cache of 10,000 znodes.
// It also measures to the end of a read that follows a bare watch. They take turns.
func BenchmarkChange(b *testing.B) {
	c, path := benchmarkTree(b)
	writer := must.Get(framework.NewClient(zktest.Shared(b).Addr()))(b)
	defer writer.Close()
	made := must.Get(cache.New(c, path))(b)
	defer made.Close()
	must.OK(b, made.Ready(b.Context()))
	seen := make(chan time.Time, 1)
	defer made.OnEvent(func(e cache.Event) {
		if e.Kind == cache.Changed {
			seen <- time.Now()
		}
	})()
	bare := path + "-bare"
	must.Get(writer.Create(b.Context(), bare, nil))(b)
	set := func(path string, i int) time.Time {
		start := time.Now()
		go func() { // the reply is not waited for
			_, _ = writer.Set(context.WithoutCancel(b.Context()), path, []byte(strconv.Itoa(i)), framework.AnyVersion)
		}()
		return start
	}
	var cached, watched []time.Duration
	for i := 0; b.Loop(); i++ {
		start := set(path+"/7/7", i)
		cached = append(cached, (<-seen).Sub(start))
		w := must.Get(c.Watch(b.Context(), bare, framework.WatchData))(b)
		start = set(bare, i)
		<-w.Fired()
		must.Get2(c.Get(b.Context(), bare))(b)
		watched = append(watched, time.Since(start))
	}
	report := func(name string, took []time.Duration) float64 {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), name+"-p99-µs")
		return float64(took[len(took)/2])
	}
	b.ReportMetric(report("cache", cached)/report("watch", watched), "×")
}
