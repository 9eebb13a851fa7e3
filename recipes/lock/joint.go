package lock

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/queue"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// A joint is what the hold of a [Multi] is made of: a lease of each member, in
// the order of their locking. Each tells the hold when it is lost.
type joint struct {
	members []*Lease
	multi   *Multi
	party   party
	held    *telemetry.Hold // what telemetry follows of it; nil for nothing
}

// newLease returns the lease that stands for those of all members. Its hold
// borrows from the first member what a hold has one of.
func (j *joint) newLease(path string) *Lease {
	first := j.members[0].hold
	h := &hold{
		registry: first.registry,
		key:      holdKey{path: path, party: party{owner: NewOwner("")}}, // of this lease alone
		path:     path,
		grant:    first.grant,
		means:    first.means,
		guard:    first.guard,
		joint:    j,
		held:     j.held,
	}
	h.registry.mu.Lock()
	lease := h.leaseLocked()
	h.registry.mu.Unlock()
	for _, l := range j.members {
		l.joinTo(h)
	}
	h.check() // for what was lost before it could tell
	return lease
}

func (l *Lease) joinTo(multi *hold) {
	l.hold.registry.mu.Lock()
	defer l.hold.registry.mu.Unlock()
	l.joined = multi
}

// check makes h lost if a member's lease is lost. One that was released on its
// own is none.
func (j *joint) check(h *hold) {
	for _, l := range j.members {
		if err := l.Err(); ctxerr.Is(err, ErrLost) {
			h.lose(err)
			return
		}
	}
}

// release releases what is left of the members, in reverse order.
func (j *joint) release(ctx context.Context) error {
	return releaseAll(ctx, slices.Backward(j.members))
}

// discard gives up what is left of the members, in the background: with one of
// them lost the others are of no use, and somebody may be waiting for them.
func (j *joint) discard() { discardAll(j.members) }

// discardAll gives up the leases, in reverse order and in the background.
func discardAll(leases []*Lease) {
	for _, l := range slices.Backward(leases) {
		if last, _ := l.drop(); last { // an error says that there is nothing to give up
			l.hold.discard()
		}
	}
}

// releaseAll releases the leases, in the order given: those that follow one
// another and are held by queued znodes of one client by one transaction. One
// that was released before is passed over.
func releaseAll(ctx context.Context, leases iter.Seq2[int, *Lease]) error {
	var errs []error
	var run []*hold // to be released by one transaction
	flush := func() {
		errs = append(errs, releaseTogether(ctx, run)...)
		run = nil
	}
	for _, l := range leases {
		if !l.hold.queued() || len(run) > 0 && run[0].registry != l.hold.registry {
			flush()
		}
		if !l.hold.queued() {
			errs = append(errs, unlessReleased(l.Release(ctx)))
			continue
		}
		last, err := l.drop()
		errs = append(errs, unlessReleased(err))
		if last {
			run = append(run, l.hold)
		}
	}
	flush()
	return errors.Join(errs...)
}

func unlessReleased(err error) error {
	if ctxerr.Is(err, ErrReleased) {
		return nil
	}
	return err
}

// queued reports whether the hold is one of a lock whose every holder has a
// znode of its own in a queue, and has nothing else to be released.
func (h *hold) queued() bool {
	return h.joint == nil && h.means == nil && h.rest == nil && h.handoff == 0
}

func releaseTogether(ctx context.Context, holds []*hold) []error {
	grants := make([]*queue.Grant, len(holds))
	for i, h := range holds {
		h.stopWatching()
		grants[i] = h.grant
	}
	errs := queue.DeleteAll(ctx, grants)
	for i, h := range holds {
		errs[i] = opError("release", h.path, h.deleted(ctx, errs[i]))
	}
	return errs
}
