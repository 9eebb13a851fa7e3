package recipes_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestARecipeOfASessionEndsWithIt calls each recipe by a view of a session that has ended, or ends while
// the call waits. The call must neither hold anything in the next session nor wait forever.
func TestARecipeOfASessionEndsWithIt(t *testing.T) {
	t.Parallel()
	run := subject{name: "run", open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		e := must.Get(leader.New(c, at))(t)
		return func(ctx context.Context) (*holding, error) {
			return nil, e.Run(ctx, func(ctx context.Context, _ *lease.Lease) error { <-ctx.Done(); return nil })
		}
	}}
	slot := subject{name: "schedule", open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		s := must.Get(schedule.New(c, at))(t)
		return func(ctx context.Context) (*holding, error) {
			return nil, recipetest.Err(s.Run(ctx, time.Unix(1, 0), func(context.Context, *lease.Lease) error { return nil }))
		}
	}}
	for _, s := range append(slices.Clone(recipeSubjects), run, slot) {
		if s.readOnly { // it has nothing
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(10*time.Second)))(t)
				t.Cleanup(func() { must.OK(t, c.Close()) })
				must.OK(t, c.AwaitConnected(t.Context()))
				former := c.Session().ID
				call := s.open(t, c.InSession(former))
				must.OK(t, srv.Expire(former))
				for c.Session().ID == former || c.State() != framework.Connected {
					<-time.After(time.Second)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begun := time.Now()
				h, err := call(ctx)
				if !errors.Is(err, framework.ErrSessionEnded) && !errors.Is(err, framework.ErrClosed) {
					t.Errorf("the call by a view of a session that has ended: %v after %v", err, time.Since(begun))
				}
				if held := must.Get(c.Ephemerals(t.Context(), "/"))(t); len(held) > 0 {
					t.Errorf("the next session has %q", held)
				}
				if h != nil {
					must.OK(t, h.end(ctx))
				}
			})
		})
	}
}
