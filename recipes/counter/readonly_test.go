package counter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/testing/zkserver"
)

// A client that is ReadOnly can read the number, in no session of its own. A change fails at once, while the client's
// session lasts, and when it has ended.
func TestAChangeWhileReadOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithFrontends(3), zkserver.WithLeader(0), zkserver.WithSyncLimit(2), zkserver.WithReadOnlyMode(true))
		c := recipetest.Client(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithReadOnly(), framework.WithSessionTimeout(40*time.Second))
		n := must.Get(counter.New(c, "/n"))(t)
		must.Get(n.Add(t.Context(), 1))(t)
		v := must.Get(counter.NewValue(c, "/v", model.JSON[int]()))(t)
		must.OK(t, v.Set(t.Context(), 1))
		for _, f := range srv.Frontends()[:2] {
			f.Refuse()
			f.Isolate()
			f.Cut()
		}
		for c.State() != framework.ReadOnly {
			<-time.After(10 * time.Millisecond)
		}
		for _, state := range []string{"lasts", "has ended"} {
			calls := 0
			for name, change := range map[string]func(context.Context) error{
				"an Add": func(ctx context.Context) error { return recipetest.Err(n.Add(ctx, 1)) },
				"an Update": func(ctx context.Context) error {
					return recipetest.Err(v.Update(ctx, func(old int, _ bool) (int, error) {
						if calls++; calls > 100 {
							return 0, errors.New("too many calls")
						}
						return old + 1, nil
					}))
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				begun := time.Now()
				err := change(ctx)
				cancel()
				if took := time.Since(begun); !errors.Is(err, framework.ErrReadOnly) || took > time.Second || calls > 1 {
					t.Errorf("%s while the session %s: %v after %v, and %d calls, want ErrReadOnly at once", name, state, err, took, calls)
				}
			}
			<-time.After(time.Minute)
			if got := c.State(); got != framework.ReadOnly {
				t.Fatalf("the client is %v, want ReadOnly", got)
			}
		}
	})
}
