package lock

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/queue"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// WithLocalHandoff has the owners of one client that contend for a [Mutex] pass its
// znode on among themselves: a release gives the lock to who has waited longest for
// it here, without any request, and to somebody elsewhere only when nobody here waits
// or it was passed on max times in a row. Then the znode goes, and the next one
// here queues behind all who wait elsewhere by then.
//
// It bends the order: who came later may go first if it is here, though by no more
// than max leases for each time that somebody from here comes to the head of the
// queue. It is off by default for that reason. max has to be at least 1.
//
// Fence and Guard keep what they promise: a lease that either was asked of is not
// passed on, since its successor would have the same; its znode goes at the
// release. Ask for them early, and not where they are not needed. They have to be
// asked for before the release: afterwards [Lease.Fence] returns [ErrReleased], and what
// Lease.Guard returns always fails with it. A lock that the client knows to be asked for
// by [Revoke] is not passed on either.
//
// All values of a mutex with the option on one path and client, in one view of that,
// take part; those without queue for themselves, as the members of a [Multi] do in most cases. The
// znode shows the data, and has the ACL, of who created it, and [WithQueuePosition]
// tells nothing while its owner waits for others here.
func WithLocalHandoff(max int) Option {
	return optionFunc(func(cfg *config) {
		if max < 1 {
			cfg.faults = append(cfg.faults, errors.New("local handoff: must be at least 1 lease"))
		}
		cfg.handoff = max
	})
}

// runLocally waits for the party's turn, and makes its attempt unless it was passed
// a grant. An attempt that has a znode already, as a member of a Multi's, goes on with
// that: to wait for others that queue behind it would be for ever.
func (s *side) runLocally(ctx context.Context, h *hold, try bool) (*queue.Grant, error) {
	waits, err := s.registry.takeTurn(h, try)
	if err != nil {
		return nil, err
	}
	if waits {
		h.seen.Waits(telemetry.NoQueue)
		select {
		case <-h.turn:
		case <-ctx.Done(): // the place is the party's, as long as one of its goroutines waits
			return nil, ctxerr.Of(ctx)
		}
	}
	if h.passed != nil {
		if h.passed.Hold.Err() == nil {
			return h.passed, nil
		}
		h.setPassed(nil) // its session has ended, and the znode with that
	}
	return s.run(ctx, h, try)
}

func (h *hold) setPassed(grant *queue.Grant) {
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	h.passed = grant
}

// leaveWatch leaves the watch on the znode, with the grant, to who ends the hold:
// the next one may need it. Otherwise it closes it.
func (h *hold) leaveWatch(own *framework.Watch) {
	if h.handoff > 0 {
		h.registry.mu.Lock()
		defer h.registry.mu.Unlock()
		if h.err == nil {
			h.grant.Own = own
			return
		}
	}
	closeWatch(own)
}

// leaveRelay is leaveRelayLocked without a grant.
func (h *hold) leaveRelay() {
	if h.handoff == 0 {
		return
	}
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	h.registry.leaveRelayLocked(h, nil)
}

// returnLocked gives back what was passed on to somebody who has gone meanwhile.
// It needs mu; what is left to be done with the znode is handed to the client.
func (r *registry) returnLocked(h *hold) {
	grant := h.passed
	if h.relay.takesLocked(grant) {
		r.leaveRelayLocked(h, grant)
		return
	}
	r.leaveRelayLocked(h, nil)
	closeWatch(grant.Own)
	grant.Client.Discard(grant.Node)
	grant.Hold.Release()
}

// passOn gives the lock to the next one of the relay, if that may be. The watchdog
// has ended, so what it knew of the znode is in the grant.
func (h *hold) passOn() bool {
	if h.handoff == 0 || h.grant.Hold.Err() != nil {
		return false
	}
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	if h.relay == nil || h.relay.passes >= h.handoff || h.numbered || !h.relay.takesLocked(h.grant) {
		return false
	}
	h.registry.leaveRelayLocked(h, h.grant)
	return true
}

// number notes that the lease's number is in use: its znode is not to be passed on. It
// returns ErrReleased where it may have been by now.
func (l *Lease) number() error {
	h := l.hold
	switch {
	case h.joint != nil:
		return h.joint.members[0].number()
	case h.handoff == 0:
		return nil
	}
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	if len(h.leases) == 0 && !h.numbered {
		return ErrReleased
	}
	h.numbered = true
	return nil
}
