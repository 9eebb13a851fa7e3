package lock_test

import (
	"sync"
	"testing"

	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// BenchmarkOneProcess has 16 goroutines of one process contend for one path.
func BenchmarkOneProcess(b *testing.B) {
	c := newClient(b, zktest.Shared(b).Addr())
	for name, opts := range map[string][]lock.Option{
		"by the queue":           nil,
		"local hand-off of 100":  {lock.WithLocalHandoff(100)},
		"local hand-off of 1000": {lock.WithLocalHandoff(1000)},
	} {
		b.Run(name, func(b *testing.B) {
			m := newMutex(b, c, "/bench/one-process", opts...)
			rounds := make(chan struct{}, 1024)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for range rounds {
						lease, err := m.Lock(b.Context())
						if err == nil {
							err = lease.Release(b.Context())
						}
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				rounds <- struct{}{}
			}
			close(rounds)
			wg.Wait()
		})
	}
}
