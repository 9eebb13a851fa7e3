package sim_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docent-go/docent/recipes/lock"
)

// A harm is a fault that may break a client's connection or delay what it carries, from one
// moment to another.
type harm struct {
	client   *client // nil for every client
	from, to time.Duration
}

// harm notes that a fault begins, and harms the client, or every client if c is nil, for the
// span at most.
func (env *environment) harm(c *client, span time.Duration) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.harms = append(env.harms, harm{c, env.now(), env.now() + span})
}

// harmedLocked returns whether a fault harmed the client, or any client if c is nil, at any time
// since the moment. It needs env.mu.
func (env *environment) harmedLocked(c *client, since time.Duration) bool {
	for _, h := range env.harms {
		if (c == nil || h.client == nil || h.client == c) && h.to >= since {
			return true
		}
	}
	return false
}

// harmed is harmedLocked for those without env.mu.
func (env *environment) harmed(c *client, since time.Duration) bool {
	env.mu.Lock()
	defer env.mu.Unlock()
	return env.harmedLocked(c, since)
}

// aftermath is for how long a fault that is over explains the loss of a lease: a client that
// has proven nothing since the fault began loses the lease a session timeout later, at most.
func (env *environment) aftermath() time.Duration { return env.plan.timeout + time.Second }

// watchLoss looks at the end of a lease at the moment that the lease's context tells of it. It
// needs env.mu.
func (env *environment) watchLoss(t *leaseRecord) {
	context.AfterFunc(t.ctx, func() {
		var lost *lock.LostError
		if env.ctx.Err() != nil || !errors.As(context.Cause(t.ctx), &lost) {
			return
		}
		env.mu.Lock()
		defer env.mu.Unlock()
		env.note(t.client.name, "loses "+t.handle.name, lost)
		env.freedLocked(t)
		env.checkCause(t, lost)
	})
}

// freedLocked records that the lease blocks no client any more. It needs env.mu.
func (env *environment) freedLocked(t *leaseRecord) {
	for _, s := range t.stakes {
		s.target.freed = env.now()
	}
}

// checkCause is the validator of "loss before succession" for a loss that has no cause: no fault
// harmed the client's connection, no operator ended its session or deleted its znode, and it was
// not closed. It needs env.mu.
func (env *environment) checkCause(t *leaseRecord, lost error) {
	if env.closing[t.f] || env.harmedLocked(t.client, env.now()-env.aftermath()) {
		return
	}
	if slices.ContainsFunc(t.stakes, env.excused) {
		return
	}
	env.violatedLocked(lossFirst, "%s is lost, and no fault explains it: %v", t, lost)
}
