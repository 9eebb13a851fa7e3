package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestARecipeOfASessionEndsWithIt calls each recipe by a view of a session that has ended, or ends while
// the call waits. The call must neither hold anything in the next session nor wait forever.
func TestARecipeOfASessionEndsWithIt(t *testing.T) {
	t.Parallel()
	locker := func(t *testing.T, l lock.Locker, err error) func(context.Context) error {
		must.OK(t, err)
		return func(ctx context.Context) error { _, err := l.Lock(ctx); return err }
	}
	calls := map[string]func(t *testing.T, c *framework.Client) func(context.Context) error{
		"mutex": func(t *testing.T, c *framework.Client) func(context.Context) error {
			m, err := lock.NewMutex(c, "/lock")
			return locker(t, m, err)
		},
		"write side": func(t *testing.T, c *framework.Client) func(context.Context) error {
			rw, err := lock.NewRWMutex(c, "/lock")
			return locker(t, rw.Write(), err)
		},
		"semaphore mutex": func(t *testing.T, c *framework.Client) func(context.Context) error {
			m, err := lock.NewSemaphoreMutex(c, "/lock")
			return locker(t, m, err)
		},
		"unfair mutex": func(t *testing.T, c *framework.Client) func(context.Context) error {
			m, err := lock.NewUnfairMutex(c, "/lock")
			return locker(t, m, err)
		},
		"local": func(t *testing.T, c *framework.Client) func(context.Context) error {
			l, err := lock.NewLocal(must.Get(lock.NewMutex(c, "/lock"))(t), 3)
			return locker(t, l, err)
		},
		"multi": func(t *testing.T, c *framework.Client) func(context.Context) error {
			m, err := lock.NewMulti(must.Get(lock.NewMutex(c, "/lock"))(t), must.Get(lock.NewMutex(c, "/other"))(t))
			return locker(t, m, err)
		},
		"semaphore": func(t *testing.T, c *framework.Client) func(context.Context) error {
			s := must.Get(semaphore.New(c, "/lock", 1))(t)
			return func(ctx context.Context) error { _, err := s.Acquire(ctx, 1); return err }
		},
		"campaign": func(t *testing.T, c *framework.Client) func(context.Context) error {
			e := must.Get(leader.New(c, "/lock"))(t)
			return func(ctx context.Context) error { _, err := e.Campaign(ctx); return err }
		},
		"run": func(t *testing.T, c *framework.Client) func(context.Context) error {
			e := must.Get(leader.New(c, "/lock"))(t)
			return func(ctx context.Context) error {
				return e.Run(ctx, func(ctx context.Context, _ *lease.Lease) error { <-ctx.Done(); return nil })
			}
		},
		"double barrier": func(t *testing.T, c *framework.Client) func(context.Context) error {
			d := must.Get(barrier.NewDouble(c, "/lock", 2))(t)
			return func(ctx context.Context) error { _, err := d.Enter(ctx); return err }
		},
		"partition": func(t *testing.T, c *framework.Client) func(context.Context) error {
			p := must.Get(partition.New(c, "/lock", []string{"a", "b"}))(t)
			return func(ctx context.Context) error {
				return p.Run(ctx, func(ctx context.Context, _ string, _ *lease.Lease) error { <-ctx.Done(); return nil })
			}
		},
		"schedule": func(t *testing.T, c *framework.Client) func(context.Context) error {
			s := must.Get(schedule.New(c, "/lock"))(t)
			return func(ctx context.Context) error {
				_, err := s.Run(ctx, time.Unix(1, 0), func(context.Context, *lease.Lease) error { return nil })
				return err
			}
		},
		"node": func(t *testing.T, c *framework.Client) func(context.Context) error {
			n := must.Get(node.New(c, "/lock/node", nil))(t)
			t.Cleanup(func() { _ = n.Close(context.Background()) })
			return n.Await
		},
		"counter": func(t *testing.T, c *framework.Client) func(context.Context) error {
			n := must.Get(counter.New(c, "/lock"))(t)
			return func(ctx context.Context) error { _, err := n.Add(ctx, 1); return err }
		},
	}
	for name, of := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(10*time.Second)))(t)
				t.Cleanup(func() { must.OK(t, c.Close()) })
				must.OK(t, c.AwaitConnected(t.Context()))
				former := c.Session().ID
				call := of(t, c.InSession(former))
				must.OK(t, srv.Expire(former))
				for c.Session().ID == former || c.State() != framework.Connected {
					<-time.After(time.Second)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begun := time.Now()
				err := call(ctx)
				if !errors.Is(err, framework.ErrSessionEnded) && !errors.Is(err, framework.ErrClosed) {
					t.Errorf("the call by a view of a session that has ended: %v after %v", err, time.Since(begun))
				}
				if held := must.Get(c.Ephemerals(t.Context(), "/"))(t); len(held) > 0 {
					t.Errorf("the next session has %q", held)
				}
			})
		})
	}
}
