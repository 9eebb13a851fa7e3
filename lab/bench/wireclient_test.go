package main_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// A rival is an operation done by the client and by the bare wire client.
type rival struct {
	ours func(c *framework.Client) error
	bare func(conn *zk.Conn) error
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, rival{
		ours: func(c *framework.Client) error {
			_, _, err := c.Get(b.Context(), benchPath)
			return err
		},
		bare: func(conn *zk.Conn) error {
			_, _, err := conn.Get(benchPath)
			return err
		},
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
		bare: func(conn *zk.Conn) error {
			created, err := conn.Create(benchPath+"/node-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
			if err != nil {
				return err
			}
			return conn.Delete(created, -1)
		},
	})
}

const benchPath = "/bench"

// benchmark measures each side alone, for what it allocates, and then both in turns of a few
// operations, for the ratio of the medians. Background load therefore affects both equally.
func benchmark(b *testing.B, r rival) {
	b.Helper()
	server := zktest.Shared(b)
	c := must.Get(framework.NewClient(server.Addr()))(b)
	defer func() { must.OK(b, c.Close()) }()
	must.Get(c.Create(b.Context(), benchPath+"/keep", nil, framework.WithParents(), framework.Idempotent()))(b)
	conn, _, err := zk.Connect([]string{server.Addr()}, 30*time.Second, zk.WithLogInfo(false))
	must.OK(b, err)
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
