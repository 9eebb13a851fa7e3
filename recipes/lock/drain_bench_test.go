package lock_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zktest"
)

// BenchmarkDrain has many goroutines of one client wait for a mutex. It measures the memory of
// each and, from the holder's release on, the time per waiter.
func BenchmarkDrain(b *testing.B) {
	for _, waiters := range []int{100, 1000} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			c := newClient(b, zktest.Shared(b).Addr())
			var memory uint64
			var took time.Duration
			for b.Loop() {
				m := newMutex(b, c, "/bench/drain")
				held := mustLock(b, m)
				before := inUse()
				var wg sync.WaitGroup
				for range waiters {
					wg.Go(func() {
						lease, err := m.Lock(b.Context())
						if err == nil {
							err = lease.Release(b.Context())
						}
						if err != nil {
							b.Error(err)
						}
					})
				}
				awaitContenders(b, c, "/bench/drain", waiters+1)
				memory += max(inUse(), before) - before
				start := time.Now()
				mustRelease(b, held)
				wg.Wait()
				took += time.Since(start)
			}
			n := float64(b.N) * float64(waiters)
			b.ReportMetric(float64(memory)/n/1024, "KiB/waiter")
			b.ReportMetric(float64(took.Microseconds())/n, "µs/waiter")
		})
	}
}

// inUse returns the bytes of heap and stacks in use after a collection.
func inUse() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc + s.StackInuse
}
