package boundary_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// A call is an exported function that takes a context, and has what it needs.
type call struct {
	name string
	make func(t *testing.T, c *framework.Client) func(context.Context) error
}

// must fails the test if there is an error.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(made T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

// calls returns the functions of all recipes but package lock, which has tests of its own.
func calls() []call {
	elect := func(t *testing.T, c *framework.Client) *leader.Election {
		return must[*leader.Election](t)(leader.New(c, "/election"))
	}
	kept := func(t *testing.T, c *framework.Client) *node.Node {
		return must[*node.Node](t)(node.New(c, "/kept", nil))
	}
	cached := func(t *testing.T, c *framework.Client) *cache.Cache {
		made := must[*cache.Cache](t)(cache.New(c, "/cached"))
		t.Cleanup(func() { _ = made.Close() })
		return made
	}
	permits := func(t *testing.T, c *framework.Client) *semaphore.Semaphore {
		return must[*semaphore.Semaphore](t)(semaphore.New(c, "/semaphore", 1))
	}
	count := func(t *testing.T, c *framework.Client) *counter.Counter {
		return must[*counter.Counter](t)(counter.New(c, "/counter"))
	}
	resign := func(l *lease.Lease, err error) error {
		if err == nil {
			err = l.Release(context.Background())
		}
		return err
	}
	return []call{
		{"Election.Campaign", func(t *testing.T, c *framework.Client) func(context.Context) error {
			e := elect(t, c)
			return func(ctx context.Context) error { return resign(e.Campaign(ctx)) }
		}},
		{"Election.Run", func(t *testing.T, c *framework.Client) func(context.Context) error {
			e := elect(t, c)
			return func(ctx context.Context) error {
				led := false
				err := e.Run(ctx, func(context.Context, *lease.Lease) error { led = true; return errors.New("done") })
				if led {
					return nil
				}
				return err
			}
		}},
		{"Election.Leader", func(t *testing.T, c *framework.Client) func(context.Context) error {
			e := elect(t, c)
			return func(ctx context.Context) error { _, _, err := e.Leader(ctx); return err }
		}},
		{"Election.Participants", func(t *testing.T, c *framework.Client) func(context.Context) error {
			e := elect(t, c)
			return func(ctx context.Context) error { _, err := e.Participants(ctx); return err }
		}},
		{"Node.Await", func(t *testing.T, c *framework.Client) func(context.Context) error {
			n := kept(t, c)
			t.Cleanup(func() { _ = n.Close(context.Background()) })
			return n.Await
		}},
		{"Node.Set", func(t *testing.T, c *framework.Client) func(context.Context) error {
			n := kept(t, c)
			t.Cleanup(func() { _ = n.Close(context.Background()) })
			return func(ctx context.Context) error { return n.Set(ctx, []byte("data")) }
		}},
		{"Node.Close", func(t *testing.T, c *framework.Client) func(context.Context) error {
			n := kept(t, c)
			_ = n.Await(within(t, time.Second))
			return n.Close
		}},
		{"Group.Ready", func(t *testing.T, c *framework.Client) func(context.Context) error {
			g := must[*group.Group](t)(group.New(c, "/group"))
			t.Cleanup(func() { _ = g.Close(context.Background()) })
			return g.Ready
		}},
		{"Group.Close", func(t *testing.T, c *framework.Client) func(context.Context) error {
			g := must[*group.Group](t)(group.New(c, "/group"))
			_ = must[*node.Node](t)(g.Join("member", nil)).Await(within(t, time.Second))
			return g.Close
		}},
		{"Cache.Ready", func(t *testing.T, c *framework.Client) func(context.Context) error { return cached(t, c).Ready }},
		{"Cache.Sync", func(t *testing.T, c *framework.Client) func(context.Context) error { return cached(t, c).Sync }},
		{"Semaphore.Acquire", func(t *testing.T, c *framework.Client) func(context.Context) error {
			s := permits(t, c)
			return func(ctx context.Context) error { return resign(s.Acquire(ctx, 1)) }
		}},
		{"Semaphore.TryAcquire", func(t *testing.T, c *framework.Client) func(context.Context) error {
			s := permits(t, c)
			return func(ctx context.Context) error { return resign(s.TryAcquire(ctx, 1)) }
		}},
		{"Semaphore.Participants", func(t *testing.T, c *framework.Client) func(context.Context) error {
			s := permits(t, c)
			return func(ctx context.Context) error { _, err := s.Participants(ctx); return err }
		}},
		{"Counter.Get", func(t *testing.T, c *framework.Client) func(context.Context) error {
			n := count(t, c)
			return func(ctx context.Context) error { _, err := n.Get(ctx); return err }
		}},
		{"Counter.Set", func(t *testing.T, c *framework.Client) func(context.Context) error {
			n := count(t, c)
			return func(ctx context.Context) error { return n.Set(ctx, 1) }
		}},
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A decoy is the cause of a context's end. It notes what it is compared with: a recipe that compares an
// error with a cause in it could take the cause for a server's answer.
type decoy struct {
	mu    sync.Mutex // guards following
	taken []error
}

func (d *decoy) Error() string { return "THE CAUSE" }

func (d *decoy) Is(target error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if target != context.DeadlineExceeded { //nolint:errorlint // this very error
		d.taken = append(d.taken, target)
	}
	return false
}

// An error has the cause of its context's end once, and matches it. No recipe compares the cause.
func TestRecipesJoinTheCauseOnce(t *testing.T) {
	t.Parallel()
	for _, x := range calls() {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
				fn := x.make(t, connected(t, srv))
				srv.Freeze()
				defer srv.Thaw()
				why := new(decoy)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
				defer cancel()
				err := fn(ctx)
				if err == nil {
					return // it needs no server
				}
				if len(why.taken) > 0 {
					t.Errorf("the cause was compared with %q", why.taken)
				}
				if n := strings.Count(err.Error(), why.Error()); n != 1 || !errors.Is(err, why) || !errors.Is(err, ctx.Err()) {
					t.Errorf("%q has the cause %d times", err, n)
				}
			})
		})
	}
}

func connected(t *testing.T, srv *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must[*framework.Client](t)(framework.NewClient(srv.Addr(), append(opts, framework.WithDialer(srv.Dial))...))
	t.Cleanup(func() { _ = c.Close() })
	if err := c.AwaitConnected(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}
