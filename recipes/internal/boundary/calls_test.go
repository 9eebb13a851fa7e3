package boundary_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/semaphore"
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
				done := errors.New("done")
				err := e.Run(ctx, func(context.Context, *lease.Lease) error { return done })
				if errors.Is(err, done) {
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

// callerKey marks the contexts of a call.
type callerKey struct{}

// A watcher is a TracerProvider. It notes the operations of the client that a recipe calls with a
// caller's context as it came: the client then joins the cause to an error, and misleads the recipe.
type watcher struct {
	embedded.TracerProvider

	mu     sync.Mutex // guards following
	inside int
	bare   []string
}

func (w *watcher) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	if name != zktel.ScopeName {
		return noop.NewTracerProvider().Tracer(name, opts...)
	}
	return tracer{w: w}
}

type tracer struct {
	embedded.Tracer
	w *watcher
}

func (t tracer) Start(
	ctx context.Context, name string, opts ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	w := t.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ctx.Value(callerKey{}) == nil:
	case cause.Inside(ctx) == ctx: //nolint:testifylint // it is inside
		w.inside++
	default:
		w.bare = append(w.bare, name)
	}
	return noop.NewTracerProvider().Tracer("").Start(ctx, name, opts...)
}

func TestRecipesCallTheClientInside(t *testing.T) {
	t.Parallel()
	total := 0
	for _, x := range calls() {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := new(watcher)
				c := connected(t, zkserver.Run(t), framework.WithTracerProvider(seen), framework.WithOperationSpans(true))
				ctx := context.WithValue(within(t, time.Minute), callerKey{}, true)
				if err := x.make(t, c)(ctx); err != nil {
					t.Error(err)
				}
				seen.mu.Lock()
				defer seen.mu.Unlock()
				if len(seen.bare) > 0 {
					t.Errorf("called the client without cause.Inside: %q", seen.bare)
				}
				total += seen.inside
			})
		})
	}
	if total < 10 {
		t.Errorf("%d operations of the client were seen, want 10 or more", total)
	}
}

// An error has the cause of its context's end once, and matches it; from another recipe's call it has
// none.
func TestRecipesJoinTheCauseOnce(t *testing.T) {
	t.Parallel()
	for _, x := range calls() {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				fn := x.make(t, connected(t, srv))
				srv.Freeze()
				defer srv.Thaw()
				why := errors.New("THE CAUSE")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
				defer cancel()
				err := fn(ctx)
				if err == nil {
					return // it needs no server
				}
				if n := strings.Count(err.Error(), why.Error()); n != 1 || !errors.Is(err, why) || !errors.Is(err, ctx.Err()) {
					t.Errorf("%q has the cause %d times", err, n)
				}
				if err := fn(cause.Inside(ctx)); errors.Is(err, why) {
					t.Errorf("%q has the cause of a call from inside", err)
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
