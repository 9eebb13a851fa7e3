package lock_test

import (
	"context"
	"sync"
	"testing"

	"github.com/docent-go/docent/testing/worlds"
)

func TestExclusion(t *testing.T) {
	t.Parallel()
	const clients, goroutines, rounds = 3, 8, 50
	worlds.Each(t, func(t *testing.T, w *worlds.World) {
		var (
			wg      sync.WaitGroup
			holders = make(chan struct{}, 1) // full while somebody is in
			shared  int                      // unguarded but by the lock: -race sees two holders
			last    int64
		)
		for range clients {
			m := newMutex(t, w.Client(t), "/exclusion/mutex")
			for range goroutines {
				wg.Go(func() {
					for range rounds {
						lease, err := m.Lock(context.Background())
						if err != nil {
							t.Error(err)
							return
						}
						select {
						case holders <- struct{}{}:
						default:
							t.Error("two holders at once")
						}
						shared++
						if fence := lease.Fence(); fence <= last {
							t.Errorf("fence %d after %d: must grow", fence, last)
						} else {
							last = fence
						}
						<-holders
						if err := lease.Release(context.Background()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if want := clients * goroutines * rounds; shared != want {
			t.Errorf("%d acquisitions, want %d", shared, want)
		}
	})
}
