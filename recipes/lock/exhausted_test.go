package lock_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestCounterAtItsEnd has a lock used on after its directory's counter has come
// to its end: all contenders get one number then, and only the time of their
// creation tells who was first (python-zk/kazoo#730, python-zk/kazoo#606).
func TestCounterAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, k := range kinds()[:2] { // those whose queue stands at the path itself
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { counterAtItsEnd(t, k) })
		})
	}
}

func counterAtItsEnd(t *testing.T, k kind) {
	t.Helper()
	const path, contenders, rounds = "/exhausted", 8, 20
	server := zkserver.Run(t)
	operator := newClient(t, server.Addr(), framework.WithDialer(server.Dial))
	if _, err := operator.Create(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if err := server.SetNextSequence(path, math.MaxInt32-2); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	inside := make(chan struct{}, 1)
	for range contenders {
		c := newClient(t, server.Addr(), framework.WithDialer(server.Dial))
		l, err := k.make(c, path)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range rounds {
				err := lock.Do(t.Context(), l, func(ctx context.Context, _ *lock.Lease) error {
					select {
					case inside <- struct{}{}:
					default:
						t.Error("two holders at once")
						return nil
					}
					<-time.After(time.Millisecond) // virtual: the others queue up
					<-inside
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if names, _, err := operator.Children(t.Context(), path); err != nil || len(names) != 0 {
		t.Errorf("left in the directory: %v (%v)", names, err)
	}
}
