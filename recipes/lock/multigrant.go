package lock

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
)

// A multiGrant is the grant of a [Multi]: a lease of each member, in the order of their locking.
type multiGrant struct{ members []*Lease }

// Node returns "": each member has a znode of its own.
func (g *multiGrant) Node() string { return "" }

// Fence returns 0: each member has a fence of its own.
func (g *multiGrant) Fence() int64 { return 0 }

// Guards returns the guards of all members.
func (g *multiGrant) Guards() []framework.TxnOp {
	var guards []framework.TxnOp
	for _, member := range g.members {
		guards = append(guards, member.Guards()...)
	}
	return guards
}

// Deadline returns the earliest deadline of the members.
func (g *multiGrant) Deadline() time.Time {
	earliest := g.members[0].Deadline()
	for _, l := range g.members[1:] {
		if d := l.Deadline(); d.Before(earliest) {
			earliest = d
		}
	}
	return earliest
}

// Err returns the loss of a member. A member that was released on its own is not lost.
func (g *multiGrant) Err() error {
	for _, l := range g.members {
		if err := l.Err(); errors.Is(err, ErrLost) {
			return err
		}
	}
	return nil
}

// OnLost registers notify and after for the loss of a member.
func (g *multiGrant) OnLost(notify func(error), after func()) {
	for _, l := range g.members {
		contender.ShareOf(l).OnLost(notify, after)
	}
}

// Release releases the remaining members, in reverse order.
func (g *multiGrant) Release(ctx context.Context) error {
	return releaseAll(ctx, slices.Backward(g.members))
}

// Discard releases the remaining members in the background, because other contenders may wait for
// them.
func (g *multiGrant) Discard() { discardAll(g.members) }

// discardAll releases the leases in the background, in reverse order.
func discardAll(leases []*Lease) {
	for _, l := range slices.Backward(leases) {
		contender.ShareOf(l).Discard()
	}
}

// releaseAll releases the leases in the given order. Consecutive leases that rest on queued znodes
// of one client are released by one transaction. Leases that were released before are skipped.
func releaseAll(ctx context.Context, leases iter.Seq2[int, *Lease]) error {
	var errs []error
	var run []*hold.Hold // to be released by one transaction
	flush := func() {
		errs = append(errs, releaseTogether(ctx, run)...)
		run = nil
	}
	for _, l := range leases {
		h := contender.ShareOf(l).Hold()
		_, queued := h.Grant.(*contender.Grant)
		if !queued || len(run) > 0 && ownersOf(run[0].Client) != ownersOf(h.Client) {
			flush()
		}
		if !queued {
			errs = append(errs, unlessReleased(l.Release(ctx)))
			continue
		}
		last, err := contender.ShareOf(l).Drop()
		errs = append(errs, unlessReleased(err))
		if last {
			run = append(run, h)
		}
	}
	flush()
	return errors.Join(errs...)
}

func unlessReleased(err error) error {
	if errors.Is(err, ErrReleased) {
		return nil
	}
	return err
}

// releaseTogether releases holds of one client by one transaction, after their last shares were
// dropped.
func releaseTogether(ctx context.Context, holds []*hold.Hold) []error {
	grants := make([]*waitqueue.Grant, len(holds))
	for i, h := range holds {
		h.EndMonitors()
		grants[i] = h.Grant.(*contender.Grant).Grant
	}
	errs := waitqueue.DeleteAll(ctx, grants)
	for i, h := range holds {
		errs[i] = h.Grant.(*contender.Grant).Released(errs[i])
		h.Hooks.Released(errs[i])
	}
	return errs
}

// sessionOf returns the session of a hold's znode, 0 if the hold has no znode of its own.
func sessionOf(h *hold.Hold) int64 {
	if h.Znode == nil {
		return 0
	}
	return h.Znode.Session.Session()
}
