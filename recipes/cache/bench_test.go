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
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/zktest"
)

// benchmarkSize is how many znodes the cache of a benchmark has below its path.
const benchmarkSize = 10_000

// benchmarkTree makes a tree of 100 directories of 99 znodes, with data of 100 bytes.
func benchmarkTree(b *testing.B) (c *framework.Client, path string) {
	b.Helper()
	c, err := framework.NewClient(zktest.Shared(b).Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	path = "/bench-" + rand.Text()
	ops := []framework.TxnOp{framework.OpCreate(path, nil)}
	flush := func() {
		if _, err := c.Txn(b.Context(), ops...); err != nil {
			b.Fatal(err)
		}
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
		made, err := cache.New(c, path)
		if err != nil {
			b.Fatal(err)
		}
		if err := made.Ready(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/fill")
		b.ReportMetric(float64(int64(heap()-before))/benchmarkSize, "B/znode")
		if n := made.Snapshot().Len(); n != benchmarkSize+1 {
			b.Fatalf("%d znodes", n)
		}
		if err := made.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChange measures from the write of another client to the event of a cache of 10,000 znodes.
// It also measures to the end of a read that follows a bare watch. They take turns.
func BenchmarkChange(b *testing.B) {
	c, path := benchmarkTree(b)
	writer, err := framework.NewClient(zktest.Shared(b).Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer writer.Close()
	made, err := cache.New(c, path)
	if err != nil {
		b.Fatal(err)
	}
	defer made.Close()
	if err := made.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	seen := make(chan time.Time, 1)
	defer made.OnEvent(func(e cache.Event) {
		if e.Kind == cache.Changed {
			seen <- time.Now()
		}
	})()
	bare := path + "-bare"
	if _, err := writer.Create(b.Context(), bare, nil); err != nil {
		b.Fatal(err)
	}
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
		w, err := c.Watch(b.Context(), bare, framework.WatchData)
		if err != nil {
			b.Fatal(err)
		}
		start = set(bare, i)
		<-w.Fired()
		if _, _, err := c.Get(b.Context(), bare); err != nil {
			b.Fatal(err)
		}
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
