package lock

import "context"

// A place is where a call finds itself in its party's hold: it has a lease of
// it, or somebody else drives an attempt until turn is closed, or it drives, or
// it asks for an upgrade. The attempt that it waits for may be one for the
// lock's other side; then there is no hold yet.
type place struct {
	hold    *hold
	lease   *Lease
	turn    <-chan struct{}
	trying  bool  // who drives waits for nobody
	upgrade *hold // the read hold that stands against a write lock
}

// take finds the caller's place among holds that stand: those that are lost by
// now stand in nobody's way. It returns ErrUpgrade where a read hold does.
func (s *side) take(ctx context.Context, key holdKey, awaited *hold, try bool) (place, error) {
	for {
		found := s.join(key, awaited, try)
		switch {
		case found.lease != nil && found.hold.grant.Hold.Err() != nil:
			_ = found.lease.Release(ctx) // it says only that it was lost, and takes note of that
		case found.upgrade != nil && found.upgrade.grant.Hold.Err() == nil:
			return place{}, ErrUpgrade
		case found.upgrade != nil:
			found.upgrade.check()
		default:
			return found, nil
		}
		awaited = nil
	}
}

// join finds the caller's place. awaited is the hold that it has waited for, if
// any: it leaves those who wait and takes its new place in one step, so that an
// attempt that was handed over is not withdrawn in between.
func (s *side) join(key holdKey, awaited *hold, try bool) place {
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if awaited != nil {
		awaited.waiting--
	}
	h := s.findLocked(key)
	if h == nil {
		other := s.otherLocked(key)
		switch {
		case other != nil && other.grant == nil:
			// A party makes one attempt on a lock at a time: what comes of this
			// one decides what the caller's means.
			return place{turn: other.turnLocked(), trying: other.trying}
		case other != nil && s.kind == writeKind:
			return place{upgrade: other}
		}
		h = s.newHold(key, other)
		r.holds[key] = h
		h.live = true
	}
	switch {
	case h.grant != nil:
		return place{hold: h, lease: h.leaseLocked()}
	case h.driven:
		h.waiting++
		return place{hold: h, turn: h.turnLocked(), trying: h.trying}
	}
	h.driven, h.trying = true, try
	return place{hold: h}
}

// findLocked returns the party's hold, or nil. It needs registry.mu.
func (s *side) findLocked(key holdKey) *hold {
	if h := s.recent; h != nil && h.key.party == key.party {
		return h
	}
	h := s.registry.holds[key]
	if h != nil && h.grant != nil && h.side == s {
		s.recent = h
	}
	return h
}

// otherLocked returns the party's hold of the lock's other side, or nil. It
// needs registry.mu.
func (s *side) otherLocked(key holdKey) *hold {
	if s.other == "" {
		return nil
	}
	key.kind = s.other
	return s.registry.holds[key]
}

// unjoin leaves those who wait for h, which is nil for an attempt on the lock's
// other side: that has no need of them.
func (s *side) unjoin(h *hold) {
	if h == nil {
		return
	}
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	h.waiting--
	s.abandonLocked(h)
}
