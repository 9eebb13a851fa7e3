package lock_test

import (
	"context"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// TestExclusionInACrowd has 16 goroutines of each of 3 clients share a variable
// that nothing but the lock guards: the race detector and the count see two
// holders. The other kinds have the like in files of their own.
func TestExclusionInACrowd(t *testing.T) {
	t.Parallel()
	const clients, goroutines, rounds = 3, 16, 4
	server := zktest.Shared(t)
	crowded := map[string]func(c *framework.Client) lock.Locker{
		"Mutex": func(c *framework.Client) lock.Locker { return newMutex(t, c, "/crowd/mutex") },
		"Multi": func(c *framework.Client) lock.Locker {
			return newMulti(t, newMutexes(t, c, "/crowd/a", "/crowd/b")...)
		},
	}
	for name, newLocker := range crowded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			shared := 0
			for range clients {
				l := newLocker(newClient(t, server.Addr()))
				for range goroutines {
					wg.Go(func() {
						for range rounds {
							err := lock.Do(t.Context(), l, func(context.Context, *lock.Lease) error { shared++; return nil })
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			wg.Wait()
			if want := clients * goroutines * rounds; shared != want {
				t.Errorf("%d rounds counted, want %d", shared, want)
			}
		})
	}
}
