package sim_test

import (
	"context"
	"errors"
	"slices"

	"github.com/docent-go/docent/recipes/lock"
)

// watchLoss looks at the end of a lease at the moment that the lease's context tells of it. It
// needs w.mu.
func (w *world) watchLoss(t *leaseRecord) {
	context.AfterFunc(t.ctx, func() {
		var lost *lock.LostError
		if w.ctx.Err() != nil || !errors.As(context.Cause(t.ctx), &lost) {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.note(t.client.name, "loses "+t.handle.name, lost)
		w.freedLocked(t)
		w.checkCause(t, lost)
	})
}

// freedLocked records that the lease blocks no client any more. It needs w.mu.
func (w *world) freedLocked(t *leaseRecord) {
	for _, s := range t.stakes {
		s.target.freed = w.now()
	}
}

// checkCause is the validator of "loss before succession" for a loss that has no cause: no fault
// harmed the client's connection, no operator ended its session or deleted its znode, and it was
// not closed. It needs w.mu.
func (w *world) checkCause(t *leaseRecord, lost error) {
	if w.closing[t.f] || w.harmedLocked(t.client, w.now()-w.aftermath()) {
		return
	}
	if slices.ContainsFunc(t.stakes, w.excused) {
		return
	}
	w.violatedLocked(lossFirst, "%s is lost, and no fault explains it: %v", t, lost)
}
