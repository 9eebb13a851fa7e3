package main_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	costSessions   = 8
	costPerSession = 16 // goroutines
)

// BenchmarkCost measures how many requests per second an ensemble of three serves: the figures of
// docs/sizing.md. Servers and clients share one machine, so servers with processors of their own do
// more.
func BenchmarkCost(b *testing.B) {
	write := func(c *framework.Client, i int64) error {
		path, err := c.Create(b.Context(), fmt.Sprint("/cost-", i), nil, framework.Ephemeral())
		if err != nil {
			return err
		}
		return c.Delete(b.Context(), path)
	}
	list := func(c *framework.Client, _ int64) error {
		_, _, err := c.Children(b.Context(), "/")
		return err
	}
	sync := func(c *framework.Client, _ int64) error { return c.Sync(b.Context(), "/") }

	unflushed := costClients(b, zktest.SharedEnsemble(b))
	b.Run("write, not flushed", func(b *testing.B) { cost(b, unflushed, 2, write) })
	b.Run("list", func(b *testing.B) { cost(b, unflushed, 1, list) })
	b.Run("sync", func(b *testing.B) { cost(b, unflushed, 1, sync) })
	flushed := costClients(b, zktest.RunEnsemble(b, 3, zktest.WithFsync()))
	b.Run("write, flushed", func(b *testing.B) { cost(b, flushed, 2, write) })
}

// cost has all clients do it at once, each time with so many requests.
func cost(b *testing.B, clients []*framework.Client, requests float64, do func(c *framework.Client, i int64) error) {
	b.Helper()
	var next atomic.Int64
	b.SetParallelism(costSessions * costPerSession / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := next.Add(1)
			if err := do(clients[i%costSessions], i); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(requests*float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

func costClients(b *testing.B, e *zktest.Ensemble) []*framework.Client {
	b.Helper()
	var clients []*framework.Client
	for range costSessions {
		c := must.Get(framework.NewClient(e.Addr()))(b)
		b.Cleanup(func() { _ = c.Close() })
		must.OK(b, c.AwaitConnected(b.Context()))
		clients = append(clients, c)
	}
	return clients
}
