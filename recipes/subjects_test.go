package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/semaphore"
)

// at is the path of each subject in its view.
const at = "/lock"

// A subject is a call that may make znodes.
type subject struct {
	name string
	// open returns the call. What it has until then is the test's to end.
	open func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error)

	znode    string // the only path that it makes a znode at; "" if the name is drawn
	alone    bool   // only one client can have it at a time
	keeps    bool   // the call begins something that goes on until it is ended, even after an error
	lasting  bool   // its znode belongs to no session
	doubtful bool   // a znode may stay if the outcome is unknown, as documented
	readOnly bool   // it needs no quorum
	several  bool   // it is of several paths, so its error need not name one
}

// A holding is what a call has obtained.
type holding struct {
	lease *lease.Lease                // nil if it is none
	node  func() (path string)        // of the znode while the holding says that it has it, else ""; nil if it says nothing
	made  []string                    // the znodes that the call says it has made
	end   func(context.Context) error // nil if there is nothing to end
}

// leased is the holding of a lease.
func leased(l *lease.Lease, err error) (*holding, error) {
	if err != nil {
		return nil, err
	}
	return &holding{lease: l, end: l.Release, node: func() string {
		if l.Err() != nil {
			return ""
		}
		return nodeOf(l)
	}}, nil
}

// nodeOf returns the path of a lease's znode; of several, the first.
func nodeOf(l *lease.Lease) string {
	if members := l.Members(); len(members) > 0 {
		return members[0].Node()
	}
	return l.Node()
}

func kept(n *node.Node, err error) (*holding, error) {
	return &holding{end: n.Close, node: func() string {
		if !n.Exists() {
			return ""
		}
		return n.Path()
	}}, err
}

func locking(make func(t *testing.T, c *framework.Client) (lock.Locker, error)) func(*testing.T, *framework.Client) func(context.Context) (*holding, error) {
	return func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		l := must.Get(make(t, c))(t)
		return func(ctx context.Context) (*holding, error) { return leased(l.Lock(ctx)) }
	}
}

// recipeSubjects are the recipes.
var recipeSubjects = []subject{
	{name: "mutex", alone: true, open: locking(func(_ *testing.T, c *framework.Client) (lock.Locker, error) { return lock.NewMutex(c, at) })},
	{name: "read side", open: locking(func(t *testing.T, c *framework.Client) (lock.Locker, error) {
		return must.Get(lock.NewRWMutex(c, at))(t).Read(), nil
	})},
	{name: "write side", alone: true, open: locking(func(t *testing.T, c *framework.Client) (lock.Locker, error) {
		return must.Get(lock.NewRWMutex(c, at))(t).Write(), nil
	})},
	{name: "semaphore mutex", alone: true, open: locking(func(_ *testing.T, c *framework.Client) (lock.Locker, error) {
		return lock.NewSemaphoreMutex(c, at)
	})},
	{name: "unfair mutex", alone: true, znode: at, open: locking(func(_ *testing.T, c *framework.Client) (lock.Locker, error) {
		return lock.NewUnfairMutex(c, at)
	})},
	{name: "local", alone: true, open: locking(func(t *testing.T, c *framework.Client) (lock.Locker, error) {
		return lock.NewLocal(must.Get(lock.NewMutex(c, at))(t), 3)
	})},
	{name: "multi", alone: true, open: locking(func(t *testing.T, c *framework.Client) (lock.Locker, error) {
		return lock.NewMulti(must.Get(lock.NewMutex(c, at))(t), must.Get(lock.NewMutex(c, at+"/other"))(t))
	})},
	{name: "semaphore", alone: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		s := must.Get(semaphore.New(c, at, 2))(t)
		return func(ctx context.Context) (*holding, error) { return leased(s.Acquire(ctx, 2)) }
	}},
	{name: "campaign", alone: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		e := must.Get(leader.New(c, at))(t)
		return func(ctx context.Context) (*holding, error) { return leased(e.Campaign(ctx)) }
	}},
	{name: "double barrier", open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		d := must.Get(barrier.NewDouble(c, at, 1))(t)
		return func(ctx context.Context) (*holding, error) { return leased(d.Enter(ctx)) }
	}},
	{name: "node", znode: at + "/node", alone: true, keeps: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		n := must.Get(node.New(c, at+"/node", []byte("data")))(t)
		return func(ctx context.Context) (*holding, error) { return kept(n, n.Await(ctx)) }
	}},
	{name: "group", znode: at + "/member", alone: true, keeps: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		g := must.Get(group.New(c, at))(t)
		return func(ctx context.Context) (*holding, error) {
			n, err := g.Join("member", []byte("data"))
			if err != nil {
				return &holding{end: g.Close}, err
			}
			h, err := kept(n, n.Await(ctx))
			h.end = g.Close
			return h, err
		}
	}},
	{name: "discovery", znode: at + "/service/me", alone: true, keeps: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		r := must.Get(discovery.New[string](c, at))(t)
		return func(ctx context.Context) (*holding, error) {
			h := &holding{end: r.Close}
			reg, err := r.Register(discovery.Instance[string]{Name: "service", ID: "me", Registered: time.UnixMilli(1)})
			if err != nil {
				return h, err
			}
			return h, reg.Await(ctx)
		}
	}},
	{name: "partition", keeps: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		p := must.Get(partition.New(c, at, []string{"a", "b"}))(t)
		return func(ctx context.Context) (*holding, error) {
			running, cancel := context.WithCancel(context.WithoutCancel(ctx))
			granted, done := make(chan *lease.Lease, 1), make(chan error, 1)
			go func() { // ends with running
				done <- p.Run(running, func(ctx context.Context, _ string, l *lease.Lease) error {
					select {
					case granted <- l:
					default:
					}
					<-ctx.Done()
					return nil
				})
			}()
			h := &holding{end: func(context.Context) error {
				cancel()
				<-done
				return nil
			}}
			select {
			case l := <-granted:
				h.lease = l
				return h, nil
			case err := <-done:
				done <- err
				return h, err
			case <-ctx.Done():
				cancel()
				err := <-done
				done <- err
				return h, err
			}
		}
	}},
	{name: "counter", znode: at, lasting: true, doubtful: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		n := must.Get(counter.New(c, at))(t)
		return func(ctx context.Context) (*holding, error) { _, err := n.Add(ctx, 1); return nil, err }
	}},
	{name: "barrier", znode: at, lasting: true, doubtful: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		b := must.Get(barrier.New(c, at))(t)
		return func(ctx context.Context) (*holding, error) { return nil, b.Set(ctx) }
	}},
	{name: "cache", lasting: true, readOnly: true, open: func(t *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		return func(ctx context.Context) (*holding, error) {
			made, err := cache.New(c, at)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { must.OK(t, made.Close()) })
			return nil, errors.Join(made.Ready(ctx), made.Sync(ctx))
		}
	}},
}

// creating returns the open of a call that creates znodes below [at], of which the holding deletes each.
func creating(
	create func(ctx context.Context, c *framework.Client) (paths []string, err error),
) func(*testing.T, *framework.Client) func(context.Context) (*holding, error) {
	return func(_ *testing.T, c *framework.Client) func(context.Context) (*holding, error) {
		return func(ctx context.Context) (*holding, error) {
			if _, err := c.Create(ctx, at, nil, framework.WithParents(), framework.Idempotent()); err != nil {
				return nil, err
			}
			paths, err := create(ctx, c)
			if err != nil {
				return nil, err
			}
			born := make([]int64, len(paths))
			for i, path := range paths {
				if st, _, err := c.Exists(ctx, path); err == nil && st.EphemeralOwner == c.Session().ID {
					born[i] = st.Czxid
				}
			}
			return &holding{made: paths, end: func(ctx context.Context) (err error) {
				for i, path := range paths {
					if born[i] != 0 {
						err = errors.Join(err, c.Delete(ctx, path, framework.CreatedBy(born[i]), framework.Idempotent()))
					}
				}
				return err
			}}, nil
		}
	}
}

func creatingOne(opts ...framework.CreateOption) func(*testing.T, *framework.Client) func(context.Context) (*holding, error) {
	return creating(func(ctx context.Context, c *framework.Client) ([]string, error) {
		path, err := c.Create(ctx, at+"/made", []byte("data"), opts...)
		return []string{path}, err
	})
}

// frameworkSubjects are the client's calls that make znodes.
var frameworkSubjects = []subject{
	{name: "create", znode: at + "/made", doubtful: true, open: creatingOne(framework.Ephemeral())},
	{name: "create, idempotent", doubtful: true, open: creatingOne(framework.Ephemeral(), framework.Idempotent())},
	{name: "create, sequential", doubtful: true, open: creatingOne(framework.Ephemeral(), framework.Sequential())},
	{name: "create, protected", open: creatingOne(framework.Ephemeral(), framework.Protected())},
	{name: "create, protected and sequential", open: creatingOne(framework.Ephemeral(), framework.Protected(), framework.Sequential(), framework.WithParents())},
	{name: "create all", several: true, open: creating(func(ctx context.Context, c *framework.Client) ([]string, error) {
		return c.CreateAll(ctx,
			framework.OpCreate(at+"/one", nil, framework.Ephemeral(), framework.Protected()),
			framework.OpCreate(at+"/two", nil, framework.Ephemeral(), framework.Protected(), framework.Sequential()))
	})},
	{name: "txn", several: true, znode: at + "/made", doubtful: true, open: creating(func(ctx context.Context, c *framework.Client) ([]string, error) {
		results, err := c.Txn(ctx, framework.OpCheck(at, framework.AnyVersion), framework.OpCreate(at+"/made", nil, framework.Ephemeral()))
		if err != nil {
			return nil, err
		}
		return []string{results[1].Path}, nil
	})},
	{name: "create or set", znode: at + "/made", lasting: true, doubtful: true, open: creating(func(ctx context.Context, c *framework.Client) ([]string, error) {
		_, err := c.CreateOrSet(ctx, at+"/made", []byte("data"))
		return nil, err
	})},
}
