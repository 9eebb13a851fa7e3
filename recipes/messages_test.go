package recipes_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestMessagesSayWhatToDo provokes errors of recipes: see the test of this name in package framework.
func TestMessagesSayWhatToDo(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *lock.Lease) error { return nil }
	besides := func(name string) func(*testing.T, *framework.Client) error { // a lock, with another's znode ahead
		return func(t *testing.T, c *framework.Client) error {
			must.Get(c.Create(t.Context(), "/a/"+name, nil, framework.WithParents()))(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if strings.HasPrefix(name, "leases/") {
				_, err := must.Get(lock.NewMutex(c, "/a"))(t).Lock(ctx)
				return err
			}
			_, err := must.Get(lock.NewSemaphoreMutex(c, "/a"))(t).Lock(ctx)
			return err
		}
	}
	for name, tc := range map[string]struct {
		provoke func(t *testing.T, c *framework.Client) error
		want    string
	}{
		"a lease that was released": {func(t *testing.T, c *framework.Client) error {
			lease := must.Get(must.Get(lock.NewMutex(c, "/a"))(t).Lock(t.Context()))(t)
			must.OK(t, lease.Release(t.Context()))
			return lease.Release(t.Context())
		}, "lease: hold /in/a: released: acquire it again"},
		"WaitAtMost with WithoutWaiting": {func(t *testing.T, c *framework.Client) error {
			return lock.Do(t.Context(), must.Get(lock.NewMutex(c, "/a"))(t), nothing, lock.WithoutWaiting(), lock.WaitAtMost(time.Second))
		}, "lock: do: options: WaitAtMost and WithoutWaiting exclude each other"},
		"an instance without anything": {func(t *testing.T, c *framework.Client) error {
			_, err := must.Get(discovery.New[string](c, "/services"))(t).Register(discovery.Instance[string]{})
			return err
		}, `: name "": must not be empty or contain a slash`},
		"a mutex's path":           {besides("x-lock-0000000001"), "/in/a/x-lock-0000000001, of a mutex (or an election in LeaderSelector's format); this is a semaphore"},
		"a latch's path":           {besides("x-latch-0000000001"), "/in/a/x-latch-0000000001, of an election in LeaderLatch's format; this is a semaphore"},
		"a read/write lock's path": {besides("x-__READ__0000000001"), "/in/a/x-__READ__0000000001, of a read/write lock; this is a semaphore"},
		"a semaphore's path":       {besides("leases/x-lease-0000000001"), "/in/a/leases/x-lease-0000000001, of a semaphore; this is a mutex (or an election in LeaderSelector's format)"},
		"a kazoo lock's path":      {besides("x__lock__0000000001"), "/in/a/x__lock__0000000001, of a lock of kazoo's; this is a semaphore"},
		"an unfair mutex's path": {func(t *testing.T, c *framework.Client) error {
			must.Get(must.Get(lock.NewUnfairMutex(c, "/a"))(t).Lock(t.Context()))(t)
			_, err := must.Get(lock.NewMutex(c, "/a"))(t).Lock(t.Context())
			return err
		}, "lock: lock /in/a: another kind of lock is on the path: both would be granted, so give each kind a path of its own: the znode of an unfair mutex; this is a mutex (or an election in LeaderSelector's format): framework: "},
		"an unfair mutex's wait for a persistent znode": {func(t *testing.T, c *framework.Client) error {
			must.Get(c.Create(t.Context(), "/a", nil, framework.WithParents()))(t)
			return lock.Do(t.Context(), must.Get(lock.NewUnfairMutex(c, "/a"))(t), nothing, lock.WaitAtMost(time.Minute))
		}, "wait ended (blocked by /in/a, which belongs to no session: no lock will free it): "},
		"a queue behind a persistent znode": {func(t *testing.T, c *framework.Client) error {
			must.Get(c.Create(t.Context(), "/a/x-lock-0000000000", nil, framework.WithParents()))(t)
			return lock.Do(t.Context(), must.Get(lock.NewMutex(c, "/a"))(t), nothing, lock.WaitAtMost(time.Minute))
		}, "(blocked by /in/a/x-lock-0000000000, which belongs to no session: no lock will free it): "},
		"Do of a lock that was not made": {func(t *testing.T, c *framework.Client) error {
			mutex, _ := lock.NewMutex(c, "a") // the error is forgotten
			return lock.Do(t.Context(), mutex, nothing)
		}, "lock: do: locker: must not be nil: was the error of its constructor checked?"},
		"more permits than a semaphore has": {func(t *testing.T, c *framework.Client) error {
			_, err := must.Get(semaphore.New(c, "/a", 3))(t).Acquire(t.Context(), 4)
			return err
		}, "semaphore: acquire /in/a: 4 permits of a semaphore of 3: more permits than the semaphore has"},
		"a slot that is now": {func(t *testing.T, c *framework.Client) error {
			_, err := must.Get(schedule.New(c, "/a"))(t).Run(t.Context(), time.Now().Add(time.Nanosecond).UTC(), nothing)
			return err
		}, "slot 2000-01-01T00:00:00.000000001Z: must be in whole seconds: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				root := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial)))(t)
				t.Cleanup(func() { must.OK(t, root.Close()) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				must.OK(t, root.AwaitConnected(ctx))
				err := tc.provoke(t, must.Get(root.Namespace("in"))(t))
				if err == nil || strings.Count(err.Error(), tc.want) != 1 {
					t.Errorf("%v, want once %q", err, tc.want)
				}
				if lines := strings.Split(err.Error(), "\n"); len(lines) != 1 {
					t.Errorf("%d faults, want one", len(lines))
				}
			})
		})
	}
}
