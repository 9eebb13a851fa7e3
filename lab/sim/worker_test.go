package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A worker is a goroutine of a client that locks and releases.
type worker struct {
	env  *environment
	c    *client
	name string
	plan workerPlan
	r    *rand.Rand

	f       *framework.Client // that the handles are of
	handles []*handle
	held    []*leaseRecord
	doing   string // guarded by environment.mu
	waiting *wait  // guarded by environment.mu; nil if it does not wait
}

func (c *client) newWorker(i int, p workerPlan) *worker {
	return &worker{env: c.env, c: c, name: fmt.Sprintf("%s/%d", c.name, i), plan: p, r: rand.New(rand.NewPCG(p.seed, 4))}
}

// party is who a call is made by, for the oracle.
func (k *worker) party() string {
	if k.plan.owned {
		return k.c.name + "/" + k.c.owner.String()
	}
	return k.name
}

func (h *handle) kind() string {
	if h.target == nil {
		return "multi"
	}
	return h.name[:len(h.name)-len(h.target.path)-1]
}

// work runs until the horizon, and then releases what it has. environment.run starts it and waits for
// it.
func (k *worker) work() {
	for k.env.now() < k.env.plan.horizon && k.env.ctx.Err() == nil {
		k.refresh()
		k.step(k.handles[k.r.IntN(len(k.handles))])
		k.rest()
	}
	for len(k.held) > 0 {
		k.release()
	}
	k.do("has ended")
}

// refresh sees to it that the handles are of the client that is there now.
func (k *worker) refresh() {
	f := k.c.current()
	if f == k.f {
		return
	}
	k.f, k.handles = f, nil
	for _, use := range k.plan.kinds {
		k.handles = append(k.handles, made(k.handle(f, use)))
	}
}

// step does one thing with a lock.
func (k *worker) step(h *handle) {
	switch n := k.r.IntN(20); {
	case n < 7 && h.run != nil && len(k.held) == 0:
		k.run(h)
	case n < 10:
		k.lock(h, h.locker, "Lock", h.locker.Lock)
	case n < 14:
		k.lock(h, h.locker, "TryLock", h.locker.TryLock)
	case n < 16:
		k.doLocked(h)
	case n == 16 && h.downgrade != nil:
		k.lock(h, h.downgrade, "Lock the read side of", h.downgrade.Lock)
	case n == 17 && h.list != nil:
		k.revoke(h)
	case n == 18 && h.held != nil:
		h.held(k.owned(k.env.ctx))
	default:
		k.write()
	}
}

// rest lets time pass with what is held, or without, and releases some.
func (k *worker) rest() {
	for _, t := range k.held {
		k.env.checkLoss(t)
	}
	span := k.env.plan.timeout
	if k.plan.brisk && k.r.IntN(8) > 0 {
		span /= 200
	}
	if len(k.held) == 0 {
		pass(upTo(k.r, span/2))
		return
	}
	switch k.r.IntN(6) {
	case 0, 1, 2:
		pass(upTo(k.r, span/50))
	case 3:
		pass(upTo(k.r, span*3))
	default:
		pass(upTo(k.r, span))
	}
	if k.r.IntN(4) == 0 {
		k.write()
	}
	for len(k.held) > 0 && (k.r.IntN(3) > 0 || len(k.held) > 2) {
		k.release()
	}
}

func (k *worker) owned(ctx context.Context) context.Context {
	if k.plan.owned {
		return lock.ContextWithOwner(ctx, k.c.owner)
	}
	return ctx
}

// do records what the worker is about to do, for when it hangs.
func (k *worker) do(what string) {
	k.env.mu.Lock()
	defer k.env.mu.Unlock()
	k.doing = what
	k.env.note(k.name, what, nil)
}

// call returns a context that ends anywhere, and not before limit has passed at the
// latest. One that never ends is for who holds nothing: others may wait for that.
func (k *worker) call(limit time.Duration) call {
	now := time.Now()
	c := call{began: now}
	parent := k.owned(k.env.ctx)
	var span time.Duration
	switch k.r.IntN(8) {
	case 0:
	case 1:
		span = upTo(k.r, 5*time.Millisecond)
	case 2:
		span = upTo(k.r, 300*time.Millisecond)
	case 3:
		if len(k.held) == 0 {
			c.ctx, c.stop = parent, func() {}
			return c
		}
		span = upTo(k.r, limit)
	default:
		span = upTo(k.r, limit)
	}
	c.ends = now.Add(span)
	cause := endedBy[k.r.IntN(len(endedBy))]
	if k.r.IntN(2) == 0 {
		ctx, cancel := context.WithTimeoutCause(parent, span, cause)
		c.ctx, c.stop = ctx, cancel
		return c
	}
	ctx, cancel := context.WithCancelCause(parent)
	timer := time.AfterFunc(span, func() { cancel(cause) })
	c.ctx, c.stop = ctx, func() { timer.Stop(); cancel(nil) }
	return c
}
