package sim_test

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/recipes/lock"
)

// watchLoss looks at the end of a lease at the moment that the lease's context tells of it. It
// needs w.mu.
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

// freedLocked records that the lease blocks no client any more. It needs w.mu.
func (env *environment) freedLocked(t *leaseRecord) {
	for _, s := range t.stakes {
		s.target.freed = env.now()
	}
}

// checkCause is the validator of "loss before succession" for a loss that has no cause: no fault
// harmed the client's connection, no operator ended its session or deleted its znode, and it was
// not closed. It needs w.mu.
func (env *environment) checkCause(t *leaseRecord, lost error) {
	if env.closing[t.f] || env.harmedLocked(t.client, env.now()-env.aftermath()) {
		return
	}
	if slices.ContainsFunc(t.stakes, env.excused) {
		return
	}
	env.violatedLocked(lossFirst, "%s is lost, and no fault explains it: %v", t, lost)
}
