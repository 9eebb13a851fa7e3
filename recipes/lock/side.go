package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/queue"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// A side is one way to hold a queue lock: a mutex has one, a read/write lock has
// two. It is where owners, lock counts and attempts meet.
type side struct {
	registry *registry
	queue    *queue.Queue
	kind     string // of its znodes
	other    string // kind of the lock's other side; "" if there is none
	path     string // of the lock, as its user gave it
	full     string // of the lock, in the ensemble
	cfg      config
	tel      telemetry.Lock

	recent *hold // that was re-entered last, while it is live; guarded by registry.mu
}

func (s *side) key(p party) holdKey { return holdKey{path: s.full, kind: s.kind, party: p} }

// acquire re-enters what the caller holds, drives an attempt for it, or waits
// for the one that another goroutine of the same party drives.
func (s *side) acquire(ctx context.Context, try bool) (*Lease, error) {
	return s.acquireFor(ctx, partyOf(ctx), try)
}

func (s *side) acquireFor(ctx context.Context, p party, try bool) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, ctxerr.Of(ctx)
	}
	place, err := s.take(ctx, s.key(p), nil, try)
	if place.lease != nil {
		return place.lease, nil // a re-entry, which telemetry costs nothing
	}
	ctx, seen := s.tel.Begin(ctx)
	return observed(ctx, seen, func() (*Lease, error) { return s.contend(ctx, seen, s.key(p), place, err, try) })
}

// contend goes on from the place that the caller took, or failed to take.
func (s *side) contend(ctx context.Context, seen *telemetry.Acquire, key holdKey, place place, err error, try bool) (*Lease, error) {
	for {
		switch {
		case err != nil:
			return nil, err
		case place.lease != nil:
			seen.Join()
			return place.lease, nil
		case place.turn == nil:
			place.hold.follow(seen)
			return s.drive(ctx, place.hold, try)
		case try && !place.trying:
			s.unjoin(place.hold)
			return nil, ErrHeld
		default:
			if err := wait(ctx, place.turn); err != nil {
				s.unjoin(place.hold)
				return nil, err
			}
			place, err = s.take(ctx, key, place.hold, try)
		}
	}
}

// newHold returns a hold whose attempt has not begun. beside is the party's
// hold of the write side, if it has that and asks for the read side.
func (s *side) newHold(key holdKey, beside *hold) *hold {
	h := &hold{
		registry: s.registry,
		side:     s,
		key:      key,
		path:     s.path,
		policy:   s.cfg.lossPolicy,
		revoked:  s.cfg.revoked,
		handoff:  s.cfg.handoff,
	}
	if h.handoff == 0 {
		h.attempt = s.newAttempt(h, beside)
	}
	return h
}

func (s *side) newAttempt(h, beside *hold) *queue.Attempt {
	data := func() []byte { return s.cfg.nodeData(h.key.party, h.seen) }
	if beside != nil {
		return s.queue.NewAttemptBeside(beside.grant, s.kind, data)
	}
	return s.queue.NewAttempt(s.kind, data)
}

// contender returns h's attempt. With local hand-off there is none before it is
// needed: most are passed the lock. It is for who drives.
func (s *side) contender(h *hold) *queue.Attempt {
	if h.attempt == nil {
		h.attempt = s.newAttempt(h, nil)
		h.attempt.Observer = observerOf(h.seen)
	}
	return h.attempt
}

// drive makes the attempt, and hands it over or gives it up if that fails.
func (s *side) drive(ctx context.Context, h *hold, try bool) (*Lease, error) {
	returned := false
	defer func() {
		if !returned { // a function of the user's panicked
			_, _ = s.conclude(ctx, h, nil, errPanicked)
		}
	}()
	run := s.run
	if h.handoff > 0 {
		run = s.runLocally
	}
	grant, err := run(ctx, h, try)
	returned = true
	return s.conclude(ctx, h, grant, err)
}

// conclude ends the driving of an attempt, with a lease of the grant, or with err.
func (s *side) conclude(ctx context.Context, h *hold, grant *queue.Grant, err error) (*Lease, error) {
	if err == nil && ctx.Err() != nil {
		// Both at once: no lease is returned to somebody who has gone.
		err = ctxerr.Of(ctx)
	}
	var held *telemetry.Hold
	if err == nil {
		held = h.seen.Granted(ctx, grant.Fence(), grant.Hold.Session())
		h.follow(nil)
	}
	lease, err := s.settle(h, grant, held, err)
	if err == nil {
		h.check() // a session that ended before the grant could not tell the hold
	}
	return lease, err
}

func (s *side) settle(h *hold, grant *queue.Grant, held *telemetry.Hold, err error) (*Lease, error) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	h.undrivenLocked()
	if err != nil {
		s.abandonLocked(h)
		return nil, err
	}
	h.held = held
	h.grantedLocked(grant)
	return h.leaseLocked(), nil
}

func (s *side) run(ctx context.Context, h *hold, try bool) (*queue.Grant, error) {
	if !try {
		return s.contender(h).Run(ctx)
	}
	grant, err := s.contender(h).Try(ctx)
	switch {
	case err == queue.ErrBusy: //nolint:errorlint // alone: there is nothing to add
		return nil, ErrHeld
	case ctxerr.Is(err, queue.ErrBusy):
		return nil, fmt.Errorf("%w: %w", ErrHeld, err)
	}
	return grant, err
}

// abandonLocked withdraws the attempt if nobody of the party wants it any more.
// It needs registry.mu; withdrawing only hands the znode to the client.
func (s *side) abandonLocked(h *hold) {
	if s.registry.unwantedLocked(h) && h.attempt != nil {
		h.attempt.Withdraw()
	}
}

// latest returns the caller's latest lease.
func (s *side) latest(ctx context.Context) (*Lease, error) {
	key := s.key(partyOf(ctx))
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.holds[key]; h != nil && len(h.leases) > 0 {
		return h.leases[len(h.leases)-1], nil
	}
	if lost := r.lost[key]; len(lost) > 0 {
		h := lost[len(lost)-1]
		return h.leases[len(h.leases)-1], nil
	}
	return nil, ErrNotOwner
}

// held returns the caller's lock count.
func (s *side) held(ctx context.Context) int {
	key := s.key(partyOf(ctx))
	r := s.registry
	r.mu.Lock()
	h := r.holds[key]
	granted := h != nil && h.grant != nil
	r.mu.Unlock()
	if !granted {
		return 0
	}
	h.check()
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.err != nil {
		return 0
	}
	return len(h.leases)
}

func wait(ctx context.Context, turn <-chan struct{}) error {
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}

// errPanicked ends the attempt whose driver did not return: a function of the
// user's panicked in it, or ended the goroutine.
var errPanicked = errors.New("a function of the user's panicked")
