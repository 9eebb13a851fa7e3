package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
)

// visits are of what one lock guards. The counter shared has no other guard, so that the race
// detector sees two holders at once.
type visits struct {
	t       *testing.T
	kind    kind
	holders chan struct{} // full while a holder is in
	shared  int
	fence   int64
}

func newVisits(t *testing.T, k kind) *visits {
	t.Helper()
	return &visits{t: t, kind: k, holders: make(chan struct{}, 1)}
}

// visit checks that no other holder is in, and that the fence grows.
func (v *visits) visit(lease *lock.Lease) {
	select {
	case v.holders <- struct{}{}:
	default:
		v.t.Error("two holders at once")
		return
	}
	v.shared++
	fence := firstOf(lease).Fence()
	if fence < v.fence || fence == v.fence && v.kind.name != "local" { // which hands one grant on
		v.t.Errorf("fence %d after %d: must grow", fence, v.fence)
	}
	v.fence = fence
	<-v.holders
}

func TestExclusion(t *testing.T) {
	t.Parallel()
	const clients, goroutines, rounds = 3, 16, 5
	eachKindAndEnv(t, kindsThat(kind.exclusive), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		var wg sync.WaitGroup
		guarded := newVisits(t, k)
		for range clients {
			l := k.lock(t, env.Client(t), path)
			for range goroutines {
				wg.Go(func() {
					for range rounds {
						err := lock.Do(context.Background(), l, func(_ context.Context, lease *lock.Lease) error {
							guarded.visit(lease)
							return nil
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		if want := clients * goroutines * rounds; guarded.shared != want {
			t.Errorf("%d visits, want %d", guarded.shared, want)
		}
	})
}

// TestTryLockExclusion has contenders that never wait. The lock is free in the end.
func TestTryLockExclusion(t *testing.T) {
	t.Parallel()
	const contenders, tries = 6, 30
	eachKindAndEnv(t, kindsThat(kind.exclusive), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		observer := env.Client(t)
		var wg sync.WaitGroup
		guarded := newVisits(t, k)
		for i := range contenders {
			c := observer
			if i%2 == 0 {
				c = env.Client(t)
			}
			l := k.lock(t, c, path)
			wg.Go(func() {
				for range tries {
					lease, err := l.TryLock(t.Context())
					if errors.Is(err, lock.ErrHeld) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					guarded.visit(lease)
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if guarded.shared == 0 {
			t.Error("no try was granted")
		}
		mustRelease(t, mustLock(t, k.lock(t, observer, path)))
	}, oneOfEach())
}

// TestOrder has several waiters in each of three sessions.
func TestOrder(t *testing.T) {
	t.Parallel()
	const waiters = 9
	queues := map[string]string{"mutex": "", "write side": "", "semaphore mutex": "/locks"}
	ordered := kindsThat(func(k kind) bool { _, ok := queues[k.name]; return ok })
	eachKindAndEnv(t, ordered, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		holder := env.Client(t)
		clients := []*framework.Client{env.Client(t), env.Client(t), holder}
		held := mustLock(t, k.lock(t, holder, path))
		queue := path + queues[k.name]
		if queue != path {
			awaitContenders(t, holder, queue, 0) // the holder of a semaphore mutex leaves the queue
		}
		ahead := len(contenders(t, holder, queue))
		grants := make(chan int, waiters)
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range waiters {
			l := k.lock(t, clients[i%len(clients)], path)
			wg.Go(func() {
				lease, err := l.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				grants <- i
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			awaitContenders(t, holder, queue, ahead+i+1)
		}
		mustRelease(t, held)
		for want := range waiters {
			if got := must.Receive(t, grants, "the next grant"); got != want {
				t.Fatalf("grant %d went to waiter %d", want, got)
			}
		}
	})
}
