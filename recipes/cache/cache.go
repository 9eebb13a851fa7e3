package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/goid"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/retry"
)

// recipe begins the text of errors.
const recipe args.Recipe = "cache"

// A Cache is a copy of a znode and of all znodes below it. It takes the place of Curator's CuratorCache,
// NodeCache, PathChildrenCache and TreeCache. Its methods may be called concurrently.
type Cache struct {
	client    *framework.Client
	path      string
	log       *zap.Logger
	telemetry *instruments
	listeners *listeners.Queued[notice]
	view      atomic.Pointer[Snapshot] // stored with mu held
	ctx       context.Context          // ends at Close, or when the client is closed
	cancel    context.CancelCauseFunc
	loop      *loop
	wg        sync.WaitGroup // the goroutine of loop
	caller    atomic.Uint64  // the id of that goroutine, which calls users' functions

	mu      sync.Mutex // guards following; never held across a request or a callback
	state   state
	changed chan struct{} // closed and replaced when the view or the state changes
}

// New returns a cache of the znode at path, which need not exist, and of all znodes below it, and
// begins to fill it: see [Cache.Ready]. It creates and writes nothing. The cache has to be closed. If
// an argument is faulty, New returns all faults, joined.
func New(c *framework.Client, path string, opts ...Option) (*Cache, error) {
	cfg, err := newConfig(path, opts)
	err = errors.Join(args.Client(c), err)
	if err != nil {
		return nil, recipe.Error(c, "new", path, err)
	}
	return start(c, path, cfg), nil
}

func start(client *framework.Client, path string, cfg config) *Cache {
	c := &Cache{
		client: client, path: path,
		log:       client.Logger().Named("cache"),
		telemetry: newInstruments(client, cfg.Name),
		state:     state{since: time.Now(), cause: errFilling},
		changed:   make(chan struct{}),
	}
	c.loop = newLoop(c, extent{root: path, depth: cfg.depth, keep: cfg.keep, log: c.log}, cfg.bounds)
	c.listeners = listeners.NewQueued[notice](func(p *listeners.PanicError) {
		c.log.Error("a listener panicked", zap.Error(p))
	})
	c.view.Store(&Snapshot{})
	c.ctx, c.cancel = context.WithCancelCause(context.Background()) // the cache's own life
	c.telemetry.opened(c.ctx)
	c.wg.Go(c.run)
	return c
}

// run ends with the cache or the client.
func (c *Cache) run() {
	c.caller.Store(goid.ID())
	defer c.client.OnState(c.onState)()
	defer c.endTelemetry()
	if c.loop.run(c.ctx) != nil { // the client is closed
		c.unseen()
		c.cancel(framework.ErrClosed)
	}
}

// Path returns the path that New was given.
func (c *Cache) Path() string { return c.path }

// Ready waits until the cache is ready: it is filled, and the client is Connected. The cache then has
// everything that was committed when New was called, or when the connection last came back. If ctx
// ends first, the error wraps ctx's and says what the cache waits for. If the client may not read
// the path itself, Ready returns that error at once, [framework.ErrNoAuth] for one, and
// [framework.ErrUnsupported] if the server has no recursive watches. Once the cache or its
// client is closed, it returns [framework.ErrClosed].
func (c *Cache) Ready(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	for {
		c.mu.Lock()
		st, changed := c.state, c.changed
		c.mu.Unlock()
		switch {
		case c.ctx.Err() != nil:
			return recipe.Error(c.client, "ready", c.path, context.Cause(c.ctx))
		case st.ready:
			return nil
		case st.fault != nil:
			return recipe.Error(c.client, "ready", c.path, st.fault)
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
		case <-ctx.Done():
			return recipe.CallError(ctx, c.client, "ready", c.path, c.ended(ctx, st.cause))
		}
	}
}

// syncPause is the pause before Sync asks again, after the connection was lost.
const syncPause = 50 * time.Millisecond

// Sync waits until the cache has everything that was committed when Sync was called, by whatever
// client. The snapshot is settled then, if nothing has changed since. Sync costs a transaction that changes
// nothing, and sometimes a read. It waits across outages. If ctx ends first, the error wraps ctx's. Other
// errors are those of [Cache.Ready], and [framework.ErrAuthFailed].
func (c *Cache) Sync(ctx context.Context) error {
	usercall.Require("ctx", ctx != nil)
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	err := retry.Do(both, retry.Forever(syncPause), func(ctx context.Context) error {
		err := c.client.AwaitConnected(ctx)
		if err == nil {
			err = c.client.Ready(ctx) // sync itself may be answered before its server has applied all
		}
		if errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrAuthFailed) {
			return retry.Permanent(err)
		}
		return err
	})
	if err == nil {
		err = c.await(both)
	}
	if c.ctx.Err() != nil {
		err = context.Cause(c.ctx)
	}
	return recipe.CallError(ctx, c.client, "sync", c.path, err)
}

// Get returns the znode at path as the cache has it. Errors: [framework.ErrNoNode] if the cache has no such
// znode, [ErrNotRead], [ErrOutside], and those of [Snapshot.Unread].
func (c *Cache) Get(path string) (Node, error) {
	if n, ok := c.Snapshot().Get(path); ok {
		return n, nil
	}
	err := c.absence(path) // before the snapshot that decides, which may be the first
	s := c.Snapshot()
	if n, ok := s.Get(path); ok {
		return n, nil
	}
	if unread := s.unread.get(path); unread != nil {
		err = unread.err
	}
	return Node{}, recipe.Error(c.client, "get", path, err)
}

// Filled reports whether the cache has been filled. Until then it is not known whether a znode that it does not have
// exists. It remains true in outages: see [Cache.Stale].
func (c *Cache) Filled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.filled
}

// Snapshot returns what the cache has now. It costs no copy.
func (c *Cache) Snapshot() *Snapshot { return c.view.Load() }

// Stale returns since when the cache may be behind, and whether it may. Before the cache is ready for the
// first time, that is since New was called. Stale can't know of an outage that the client
// has yet to notice, or of a server that lags behind its leader.
func (c *Cache) Stale() (since time.Time, stale bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.ready {
		return time.Time{}, false
	}
	return c.state.since, true
}

// closeGrace is how long Close waits for listeners that are still at work.
const closeGrace = 5 * time.Second

// Closed reports whether the Cache, or its client, is closed.
func (c *Cache) Closed() bool { return c.ctx.Err() != nil }

// Close ends the cache. Its goroutines are gone when it returns, and its watch at the server goes. It calls
// no function of OnEvent any more. It waits for one that is running, for five seconds at most; the error
// says if one still runs. Close may be called several times, also by such a function, and by that of
// [WithFilter], for whose goroutine it does not wait. The znodes of
// the cache can still be read.
func (c *Cache) Close() error {
	c.cancel(framework.ErrClosed)
	if c.caller.Load() != goid.ID() {
		c.wg.Wait()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace) // the cache's own context has ended
	defer cancel()
	// Each caller waits by itself: one that is a listener is not waited for.
	return recipe.Error(c.client, "close", c.path, c.listeners.Close(ctx))
}

// ended returns an error that wraps ctx's, and says why the wait took that long: for lack of a connection,
// or else because of why.
func (c *Cache) ended(ctx context.Context, why error) error {
	if err := args.Ended(ctx, c.client); errors.Is(err, framework.ErrNotConnected) {
		return err
	}
	return fmt.Errorf("%w: %s", ctx.Err(), why.Error())
}
